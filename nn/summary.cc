#include "nn/summary.h"

#include <algorithm>
#include <any>
#include <array>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/saved_tensor_hooks.h"
#include "core/base/check.h"
#include "core/dispatch/op_counter.h"
#include "nn/class_name.h"

namespace lockstep::nn {

namespace {

/// What modules are measured by: it only grows.
struct Meter {
  int64_t flops = 0;
  int64_t kept = 0;  ///< bytes
};

struct Row {
  std::array<std::string, 3> words;  ///< path, class, shape
  int64_t parameters = 0;
  bool was_called = false;
  Meter spent = {};
  std::vector<Meter> begun = {};  ///< of the calls in progress: a module may call itself
};

/// Removes the hooks also when a forward pass throws.
struct HooksOfSummary {
  std::vector<ForwardHookHandle> handles;
  ~HooksOfSummary() {
    for (ForwardHookHandle& each : handles) each.remove();
  }
};

/// Bytes of the storages that operators have saved so far, each once, those of parameters apart.
class KeptBytes {
 public:
  explicit KeptBytes(const Module& model) {
    for (const Tensor& parameter : model.parameters()) note(parameter);
    bytes_ = 0;
  }

  int64_t bytes() const { return bytes_; }
  SavedTensorHooks hooks() {
    return {.pack = [this](const Tensor& tensor) -> std::any {
              note(tensor);
              return tensor;
            },
            .unpack = [](const std::any& packed) { return std::any_cast<Tensor>(packed); }};
  }

 private:
  void note(const Tensor& tensor) {
    if (!seen_.insert(tensor.storage().get()).second) return;
    alive_.push_back(tensor);  // so that no other storage gets its address
    bytes_ += static_cast<int64_t>(tensor.storage()->bytes());
  }

  std::unordered_set<const void*> seen_;
  std::vector<Tensor> alive_;
  int64_t bytes_ = 0;
};

std::vector<Row> rows_of(Module& model, const std::function<void()>& forward) {
  std::vector<const Module*> modules;
  std::vector<Row> rows;
  model.for_each([&](Module& module) {
    if (std::ranges::find(modules, &module) != modules.end()) return;  // shared
    modules.push_back(&module);
    rows.push_back({{module.path().empty() ? "(model)" : module.path(), class_name(module), "-"},
                    module.parameter_count()});
  });
  if (!forward) return rows;
  OpCounter counter;
  KeptBytes kept(model);
  const auto reading = [&] { return Meter{counter.total().flops, kept.bytes()}; };
  HooksOfSummary hooks;
  for (size_t i = 0; i < modules.size(); ++i) {
    hooks.handles.push_back(modules[i]->register_forward_pre_hook(
        [&rows, i, reading](const Module&, std::span<Tensor>) {
          rows[i].begun.push_back(reading());
        }));
    hooks.handles.push_back(modules[i]->register_forward_hook(
        [&rows, i, reading](const Module&, std::span<const Tensor>, std::span<Tensor> outputs) {
          Row& row = rows[i];
          const Meter now = reading();
          row.words[2] = outputs[0].shape();
          row.was_called = true;
          row.spent.flops += now.flops - row.begun.back().flops;
          row.spent.kept += now.kept - row.begun.back().kept;
          row.begun.pop_back();
        }));
  }
  const EnableGradGuard recorded;
  const SavedTensorHooksGuard saved(kept.hooks());
  const ModeGuard counted(counter);
  forward();
  return rows;
}

}  // namespace

std::string summary(Module& model, const std::function<void()>& forward) {
  const std::vector<Row> rows = rows_of(model, forward);
  const std::array<std::string, 3> titles = {"module", "class", "output"};
  std::array<size_t, 3> widths{};
  for (size_t i = 0; i < titles.size(); ++i) {
    widths[i] = titles[i].size();
    for (const Row& row : rows) widths[i] = std::max(widths[i], row.words[i].size());
  }
  using Counts = std::array<std::string, 3>;
  const auto line = [&](const std::array<std::string, 3>& words, const Counts& counts) {
    return fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>12}  {:>14}  {:>12}\n", words[0], widths[0],
                       words[1], widths[1], words[2], widths[2], counts[0], counts[1], counts[2]);
  };
  std::string text = line(titles, {"parameters", "FLOP", "kept"});
  for (const Row& row : rows) {
    const auto spent = [&](int64_t count) {
      return row.was_called ? std::to_string(count) : std::string("-");
    };
    text += line(row.words,
                 {std::to_string(row.parameters), spent(row.spent.flops), spent(row.spent.kept)});
  }
  size_t bytes = 0;
  for (const Tensor& parameter : model.parameters()) bytes += parameter.nbytes();
  return text + fmt::format("{} parameters, {} of them trained, {} bytes\n",
                            model.parameter_count(), model.trained_parameter_count(), bytes);
}

}  // namespace lockstep::nn
