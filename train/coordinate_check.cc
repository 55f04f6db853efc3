#include "train/coordinate_check.h"

#include <array>
#include <string_view>
#include <utility>

#include "autograd/grad_mode.h"
#include "configs/architectures.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "nn/forward_hooks.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "train/build.h"
#include "train/language_task.h"
#include "train/precision.h"
#include "train/trainer.h"

namespace lockstep::train {

namespace {

/// The kinds of layers, in the order of CoordinateCheck::layers.
enum Layer : size_t { kEmbedding, kAttention, kMlp, kBlock, kLogits };
constexpr std::array<std::string_view, 5> kLayers = {"embedding", "attention output", "MLP output",
                                                     "blocks", "logits"};

/// Where a block computes what its branches add.
struct Branches {
  const nn::Module& attention;  ///< its result is the attention's branch
  const nn::Module& middle;     ///< the second norm, which returns the sum before the MLP too
};

Branches branches_of(const nn::Module& block) {
  if (const auto* gpt2 = dynamic_cast<const nn::Gpt2Block*>(&block)) {
    return {gpt2->attn_c_proj, gpt2->ln_2};
  }
  const auto* llama = dynamic_cast<const nn::LlamaBlock*>(&block);
  LS_CHECK(llama != nullptr, ConfigError,
           "[coordinate-check] block \"{}\" has no attention and MLP that are known here: expected "
           "those of gpt2 or llama.",
           block.path());
  return {llama->o_proj, llama->post_attention_layernorm};
}

/// What the layers of one forward pass have computed, by kind and block, in f64.
using Activations = std::array<std::vector<Tensor>, kLayers.size()>;

/// Records a model's forward passes while it lives.
class Recorder {
 public:
  explicit Recorder(const nn::LanguageModel& model) {
    const std::vector<nn::Module*> blocks = model.sequence();
    after(*blocks.front(), [this](std::span<const Tensor> inputs, std::span<Tensor>) {
      keep(kEmbedding, inputs[0]);
    });
    for (const nn::Module* block : blocks) {
      const Branches branches = branches_of(*block);
      after(branches.attention, [this](std::span<const Tensor>, std::span<Tensor> outputs) {
        keep(kAttention, outputs[0]);
      });
      after(branches.middle, [this](std::span<const Tensor>, std::span<Tensor> outputs) {
        middle_ = outputs[1].to(DType::kF64);
      });
      after(*block, [this](std::span<const Tensor>, std::span<Tensor> outputs) {
        keep(kBlock, outputs[0]);
        keep(kMlp, outputs[0].to(DType::kF64) - middle_);
      });
    }
  }
  ~Recorder() {
    for (nn::ForwardHookHandle& each : handles_) each.remove();
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void keep(Layer layer, const Tensor& tensor) {
    found_[layer].push_back(tensor.to(DType::kF64).clone());
  }
  Activations take() { return std::exchange(found_, {}); }

 private:
  template <class Body>
  void after(const nn::Module& module, const Body& body) {
    handles_.push_back(
        module.register_forward_hook([body](const nn::Module&, std::span<const Tensor> inputs,
                                            std::span<Tensor> outputs) { body(inputs, outputs); }));
  }

  std::vector<nn::ForwardHookHandle> handles_;
  Activations found_;
  Tensor middle_;
};

/// The inputs of the first micro-batch of training.
Tensor first_inputs(LanguageTask& task, const config::RunConfig& config) {
  const int64_t rows = config.train().micro_batch_size();
  const int64_t length = sequence_length(config);
  const Tensor inputs = empty({rows, length}, {DType::kI64, kCPU});
  std::vector<int64_t> targets(static_cast<size_t>(length));
  for (int64_t row = 0; row < rows; ++row) {
    const std::span into(inputs.data<int64_t>() + row * length, targets.size());
    task.source().sequence(0, row, into, targets);
  }
  return inputs.to(task.model().device());
}

class Probe {
 public:
  Probe(Trainer& trainer, const config::RunConfig& config)
      : task_(dynamic_cast<LanguageTask&>(trainer.task())),
        precision_(precision_of(config)),
        inputs_(first_inputs(task_, config)) {}

  Activations measure() {
    const NoGradGuard no_grad;
    nn::LanguageModel& model = task_.model();
    const AutocastGuard region = autocast_region(precision_, model.device().type);
    model.eval();
    Recorder recorder(model);
    recorder.keep(kLogits, model.forward(inputs_));
    model.train();
    return recorder.take();
  }

 private:
  LanguageTask& task_;
  Precision precision_;
  Tensor inputs_;
};

double mean_size(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& each : tensors) sum += mean(abs(each)).item<double>();
  return sum / static_cast<double>(tensors.size());
}

double mean_move(const std::vector<Tensor>& tensors, const std::vector<Tensor>& before) {
  std::vector<Tensor> moved;
  for (size_t i = 0; i < tensors.size(); ++i) moved.push_back(tensors[i] - before[i]);
  return mean_size(moved);
}

}  // namespace

CoordinateCheck check_coordinates(
    const CoordinateOptions& options,
    const std::function<config::RunConfig(int64_t width, int64_t seed)>& config_of) {
  CoordinateCheck check{.widths = options.widths,
                        .steps = options.steps,
                        .seeds = options.seeds,
                        .threshold = options.threshold,
                        .layers = {}};
  const std::vector<std::vector<double>> zeros(static_cast<size_t>(options.steps + 1),
                                               std::vector<double>(options.widths.size()));
  for (const std::string_view layer : kLayers) {
    check.layers.push_back({std::string(layer), zeros, zeros});
  }
  const double share = 1 / static_cast<double>(options.seeds);
  for (size_t width = 0; width < options.widths.size(); ++width) {
    for (int64_t seed = 0; seed < options.seeds; ++seed) {
      const config::RunConfig config = config_of(options.widths[width], seed);
      LS_ASSERT(!is_classifier(config));
      Trainer trainer = Trainer::create(config);
      Probe probe(trainer, config);
      const Activations before = probe.measure();
      for (size_t step = 0; step < zeros.size(); ++step) {
        if (step > 0) trainer.step();
        const Activations found = step > 0 ? probe.measure() : before;
        for (size_t i = 0; i < kLayers.size(); ++i) {
          check.layers[i].sizes[step][width] += share * mean_size(found[i]);
          check.layers[i].moves[step][width] += share * mean_move(found[i], before[i]);
        }
      }
    }
  }
  return check;
}

}  // namespace lockstep::train
