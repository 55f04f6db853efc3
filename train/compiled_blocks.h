#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "compile/compiled_layers.h"
#include "compile/graph/graph_export.h"
#include "nn/block_model.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Runs the blocks of a model as compiled functions: blocks of one class and with equal options are
/// one function, whose programs take the parameters of the block that runs. Bits are those of the
/// blocks. A block that cannot be compiled is called. Not thread-safe.
class CompiledBlocks final : public nn::BlockRunner {
 public:
  /// All blocks are compiled with `options`, each kind under its own name.
  CompiledBlocks(std::string model_name, CompileOptions options)
      : model_name_(std::move(model_name)), options_(std::move(options)) {}

  Tensor run(const nn::BlockPass& pass) override;

  /// Whether no kernel of the programs so far is still being made, or on trial.
  bool is_settled() const;
  /// What became of the passes of all blocks so far.
  CompileCounts counts() const;
  /// Why a block was recorded again, or was called, each once: "Gpt2Block: eager: ...". To be asked
  /// after a pass of the model.
  std::vector<std::string> reasons() const;
  /// The graphs of all programs so far: "Gpt2Block, forward", "Gpt2Block, backward", and with
  /// several programs of a block "Gpt2Block 2, forward".
  std::vector<compiler::NamedGraph> graphs() const;
  /// Adds a reason of no block.
  void tell(std::string reason) { told_.push_back(std::move(reason)); }

 private:
  using Kind = std::pair<std::type_index, uint64_t>;  ///< class and options

  struct Layers {
    std::string name;
    CompiledLayers compiled;
  };
  Layers& layers_of(const nn::BlockPass& pass);
  Tensor call(const nn::BlockPass& pass, std::string_view why);

  std::string model_name_;
  CompileOptions options_;
  std::map<Kind, Layers> kinds_;
  int64_t called_ = 0;  ///< passes that no CompiledLayers has seen
  std::vector<std::string> told_;
};

/// Lets the blocks of `model` run as compiled functions where the config's `compile.enabled` asks
/// for it: from then on the model's blocks share what is returned. Null where it does not.
std::shared_ptr<CompiledBlocks> compile_blocks(const config::RunConfig& config, nn::Module& model);

}  // namespace lockstep::train
