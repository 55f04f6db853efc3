#include "nn/summary.h"

#include <algorithm>
#include <array>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "nn/class_name.h"

namespace lockstep::nn {

namespace {

struct Row {
  std::array<std::string, 3> words;  ///< path, class, shape
  int64_t parameters = 0;
};

/// Removes the hooks also when a forward pass throws.
struct HooksOfSummary {
  std::vector<ForwardHookHandle> handles;
  ~HooksOfSummary() {
    for (ForwardHookHandle& each : handles) each.remove();
  }
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
  HooksOfSummary hooks;
  for (size_t i = 0; i < modules.size(); ++i) {
    hooks.handles.push_back(modules[i]->register_forward_hook(
        [&rows, i](const Module&, std::span<const Tensor>, std::span<Tensor> outputs) {
          rows[i].words[2] = outputs[0].shape();
        }));
  }
  const NoGradGuard no_grad;
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
  const auto line = [&](const std::array<std::string, 3>& words, const std::string& count) {
    return fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>12}\n", words[0], widths[0], words[1], widths[1],
                       words[2], widths[2], count);
  };
  std::string text = line(titles, "parameters");
  for (const Row& row : rows) text += line(row.words, std::to_string(row.parameters));
  int64_t trained = 0;
  size_t bytes = 0;
  for (const Tensor& parameter : model.parameters()) {
    trained += parameter.requires_grad() ? parameter.numel() : 0;
    bytes += parameter.nbytes();
  }
  return text + fmt::format("{} parameters, {} of them trained, {} bytes\n",
                            model.parameter_count(), trained, bytes);
}

}  // namespace lockstep::nn
