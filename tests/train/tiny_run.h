#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "tests/core/base/temporary_directory.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Resolved config of a small GPT-2 on a generated text in `folder`, with the texts of `layers`
/// merged into it one after the other.
inline config::RunConfig run_of_layers(const TemporaryDirectory& folder,
                                       const std::vector<std::string>& layers) {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{} and {} make {}. ", i % 10, i % 7, i % 10 + i % 7);
  put_file(folder / "text.txt", text);
  const std::string base = fmt::format(
      R"(model {{ gpt2 {{ context_length: 16 layers: 2 heads: 2 width: 16 dropout: 0.1 }} }}
         data {{ text {{ path: "{}" held_out_bytes: 500 }} }}
         optimizer {{ learning_rate: 3e-3 }}
         train {{ steps: 20 batch_size: 8 }})",
      (folder / "text.txt").string());
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, base, "base.txtpb");
  for (const std::string& each : layers) {
    if (!each.empty()) config::merge_text(config, origins, each, "more.txtpb");
  }
  config::resolve(config, origins);
  return config;
}

/// Resolves that config with `more` as one layer.
inline config::RunConfig tiny_run(const TemporaryDirectory& folder, const std::string& more = "") {
  return run_of_layers(folder, {more});
}

/// Resolves it with each message of `more` as a layer, so that `more` may name one several times.
inline config::RunConfig layered_run(const TemporaryDirectory& folder, const std::string& more) {
  std::vector<std::string> layers(1);
  int depth = 0;
  for (const char c : more) {
    layers.back() += c;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) layers.emplace_back();
  }
  return run_of_layers(folder, layers);
}

/// Results that must be equal in equal runs: losses, norms, and the bytes of the weights.
struct Trace {
  std::vector<double> losses;
  std::vector<double> norms;
  std::string weights;
  friend bool operator==(const Trace&, const Trace&) = default;
};

inline Trace trace(Trainer& trainer, int steps) {
  Trace result;
  for (int i = 0; i < steps; ++i) {
    const StepResult step = trainer.step();
    result.losses.push_back(step.loss);
    result.norms.push_back(step.grad_norm);
  }
  trainer.gather_weights();
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    const Tensor here = parameter.to(kCPU);
    result.weights.append(static_cast<const char*>(here.data()), here.nbytes());
  }
  return result;
}

inline Trace trace(const config::RunConfig& config, int steps) {
  Trainer trainer = Trainer::create(config);
  return trace(trainer, steps);
}

/// All bits of the model's parameters and of the optimizer's state.
inline std::string state_bytes(Trainer& trainer) {
  std::string bytes;
  const auto add = [&](const Tensor& tensor) {
    bytes.append(static_cast<const char*>(tensor.data()), tensor.nbytes());
  };
  for (const Tensor& parameter : trainer.task().model().parameters()) add(parameter);
  for (const nn::StoredParameter& state : trainer.optimizer().state()) add(state.tensor);
  return bytes;
}

}  // namespace lockstep::train
