#include "train/compiled_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/loop_group.h"
#include "compile/program.h"
#include "configs/run.pb.h"
#include "nn/class_name.h"

namespace lockstep::train {

CompiledBlocks::Layers& CompiledBlocks::layers_of(const nn::BlockPass& pass) {
  const Kind kind(typeid(pass.block), pass.options.numbers);
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) return found->second;
  const std::string name = nn::class_name(pass.block);
  CompileOptions options = options_;
  options.name = name;
  return kinds_.try_emplace(kind, name, CompiledLayers(std::move(options))).first->second;
}

Tensor CompiledBlocks::call(const nn::BlockPass& pass, std::string_view why) {
  const std::string reason = fmt::format("{}: eager: {}", nn::class_name(pass.block), why);
  if (std::ranges::find(told_, reason) == told_.end()) told_.push_back(reason);
  ++called_;
  return pass.body(pass.inputs);
}

Tensor CompiledBlocks::run(const nn::BlockPass& pass) {
  if (!pass.options.only_called.empty()) return call(pass, pass.options.only_called);
  const nn::PassState state = pass.block.pass_state();
  if (state.has_hooks) return call(pass, "a module of it has forward hooks");
  if (state.has_buffers && pass.block.is_training()) {
    return call(pass, "training changes its running statistics");
  }
  const compiler::Body body = [&pass](TensorList inputs) {
    return std::vector<Tensor>{pass.body(inputs)};
  };
  std::vector<Tensor> results = layers_of(pass).compiled(
      body, {.inputs = pass.inputs, .parameters = state.tensors, .variant = state.modes});
  return std::move(results[0]);
}

bool CompiledBlocks::is_settled() const {
  const auto are_settled = [](const std::shared_ptr<const compiler::Program>& program) {
    return std::ranges::all_of(program->kernels(), &compiler::GroupKernel::is_settled);
  };
  return std::ranges::all_of(kinds_, [&](const auto& kind) {
    return std::ranges::all_of(kind.second.compiled.programs(), are_settled);
  });
}

CompileCounts CompiledBlocks::counts() const {
  CompileCounts sum{.eager = called_};
  for (const auto& [kind, layers] : kinds_) {
    const CompileCounts counts = layers.compiled.counts();
    sum.recorded += counts.recorded;
    sum.replayed += counts.replayed;
    sum.eager += counts.eager;
    sum.kernels += counts.kernels;
  }
  return sum;
}

std::vector<std::string> CompiledBlocks::reasons() const {
  std::vector<std::string> reasons = told_;
  if (told_.empty() && kinds_.empty()) {
    reasons.push_back(fmt::format("off: no block of {} can be compiled", model_name_));
  }
  for (const auto& [kind, layers] : kinds_) {
    for (const std::string& reason : layers.compiled.reasons()) {
      reasons.push_back(fmt::format("{}: {}", layers.name, reason));
    }
  }
  return reasons;
}

std::vector<compiler::NamedGraph> CompiledBlocks::graphs() const {
  std::vector<compiler::NamedGraph> graphs;
  for (const auto& [kind, layers] : kinds_) {
    const auto programs = layers.compiled.programs();
    for (size_t i = 0; i < programs.size(); ++i) {
      const std::string name = i == 0 ? layers.name : fmt::format("{} {}", layers.name, i + 1);
      graphs.push_back({name + ", forward", programs[i]->forward()});
      if (const compiler::Graph* const backward = programs[i]->backward()) {
        graphs.push_back({name + ", backward", *backward});
      }
    }
  }
  return graphs;
}

std::shared_ptr<CompiledBlocks> compile_blocks(const config::RunConfig& config, nn::Module& model) {
  if (!config.compile().enabled()) return nullptr;
  CompileOptions options;
  options.kernels = config.compile().kernels() ? KernelBuild::kInBackground : KernelBuild::kNever;
  options.activation_budget = config.compile().activation_budget();
  auto compiled = std::make_shared<CompiledBlocks>(nn::class_name(model), std::move(options));
  if (auto* const blocks = dynamic_cast<nn::BlockModel*>(&model)) {
    blocks->set_runner(compiled);
  } else {
    compiled->tell(fmt::format("off: {} has no sequence of blocks", nn::class_name(model)));
  }
  return compiled;
}

}  // namespace lockstep::train
