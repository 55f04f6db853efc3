// Trains a small model step by step beside PyTorch's recorded run and reports where they part.
// usage: parity DIR
// Exit status: 0 within the tolerances, 1 outside, 2 usage, 3 unreadable folder.

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "nn/language_model.h"
#include "train/grad_norm.h"
#include "train/gradient_tree.h"
#include "train/optimizer.h"
#include "train/safetensors.h"
#include "train/weights.h"

namespace {

using namespace lockstep;
using Json = nlohmann::json;

constexpr double kLossTolerance = 1e-5;  // absolute
constexpr double kNormTolerance = 1e-4;  // relative
constexpr double kGradientAbsolute = 1e-5;
constexpr double kGradientRelative = 1e-4;

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  LS_CHECK(in.good(), DataError, "[parity] cannot read {}.", path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Tensor load(const train::SafetensorsFile& file, const std::string& name) {
  const train::TensorRecord& record = file.at(name);
  const Tensor tensor = empty_tensor(record.shape, record.dtype);
  std::memcpy(tensor.data(), record.bytes.data(), record.bytes.size());
  return tensor;
}

/// The largest difference seen, and where.
struct Worst {
  double value = 0;
  std::string where = "-";

  void see(double difference, const std::string& name) {
    if (!(difference <= value)) {  // NaN counts as worst
      value = difference;
      where = name;
    }
  }
};

/// Compares `ours`, times `scale`, with the tensor that the file holds for `parameter`:
/// absolute differences, divided by (absolute + relative |want|).
void compare(const train::SafetensorsFile& file, const nn::StoredParameter& parameter,
             const Tensor& ours, double scale, double absolute, double relative, Worst& worst) {
  const Tensor want = load(file, parameter.name);
  const Tensor got = (parameter.transposed ? ours.t() : ours).contiguous();
  LS_CHECK(same(got.sizes(), want.sizes()), CheckpointError,
           "[parity] {} has another shape: expected {}, got {}.", parameter.name, want.shape(),
           got.shape());
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double expected = want.data<float>()[i];
    const double difference = std::abs(got.data<float>()[i] * scale - expected);
    worst.see(difference / (absolute + relative * std::abs(expected)), parameter.name);
  }
}

struct Run {
  Worst loss;
  Worst grad_norm;
  Worst first_gradient;  ///< in units of the tolerance
  Worst final_weight;    ///< absolute, for information

  bool good() const {
    return loss.value <= kLossTolerance && grad_norm.value <= kNormTolerance &&
           first_gradient.value <= 1;
  }
};

Run train_beside(const std::filesystem::path& folder) {
  const Json expected = Json::parse(read_text(folder / "expected.json"));
  const Json& h = expected.at("hyperparameters");
  const auto model = nn::model_from_hugging_face(read_text(folder / "config.json"));
  train::load_weights(*model, folder / "init.safetensors");
  const train::SafetensorsFile batches(folder / "batches.safetensors");
  const Tensor inputs = load(batches, "inputs");
  const Tensor targets = load(batches, "targets");
  train::AdamW optimizer(model->named_parameters(),
                         {h.at("betas")[0], h.at("betas")[1], h.at("eps"), h.at("weight_decay")});
  train::GradientTree tree(model->named_parameters());
  const std::vector<nn::StoredParameter> stored = model->stored_parameters();

  Run run;
  for (int64_t step = 0; step < inputs.size(0); ++step) {
    const double mean = 1.0 / static_cast<double>(targets.select(0, step).numel());
    tree.begin_leaf();
    const Tensor loss = nn::sum_of_losses(*model, inputs.select(0, step), targets.select(0, step));
    loss.backward();
    tree.end_leaf();
    const std::vector<Tensor>& gradients = tree.result().slots();
    const double norm = train::grad_norm(gradients) * mean;
    const double want_loss = expected.at("loss_float64")[step];
    const double want_norm = expected.at("grad_norm_float64")[step];
    run.loss.see(std::abs(loss.item<double>() * mean - want_loss), fmt::format("step {}", step));
    run.grad_norm.see(std::abs(norm - want_norm) / want_norm, fmt::format("step {}", step));
    if (step == 0) {
      const train::SafetensorsFile grads(folder / "grads_step0.safetensors");
      for (size_t i = 0; i < stored.size(); ++i) {
        compare(grads, stored[i], gradients[i], mean, kGradientAbsolute, kGradientRelative,
                run.first_gradient);
      }
    }
    optimizer.step(gradients, h.at("lr"), mean * train::clip_factor(norm, h.at("clip_grad_norm")));
  }
  const train::SafetensorsFile final_weights(folder / "final.safetensors");
  for (const nn::StoredParameter& parameter : stored) {
    compare(final_weights, parameter, parameter.tensor.detach(), 1.0, 1.0, 0.0, run.final_weight);
  }
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: parity DIR\n");
    return 2;
  }
  try {
    const Run run = train_beside(argv[1]);
    fmt::print("loss            {:.3e} at {} (limit {:.0e})\n", run.loss.value, run.loss.where,
               kLossTolerance);
    fmt::print("grad norm       {:.3e} relative, at {} (limit {:.0e})\n", run.grad_norm.value,
               run.grad_norm.where, kNormTolerance);
    fmt::print("first gradients {:.3f} of the tolerance, in {}\n", run.first_gradient.value,
               run.first_gradient.where);
    fmt::print("final weights   {:.3e}, in {}\n", run.final_weight.value, run.final_weight.where);
    fmt::print("{}\n", run.good() ? "agrees" : "DIFFERS");
    return run.good() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
