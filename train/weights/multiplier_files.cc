#include "train/weights/multiplier_files.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "nn/language_model.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kModelConfig = "config.json";
constexpr const char* kMarks = "mup";
constexpr std::string_view kTypeSuffix = "_mup";

double factor_in(const OrderedJson& marks, const char* key) {
  const auto found = marks.find(key);
  const double value =
      found != marks.end() && found->is_number() ? found->get<double>() : std::nan("");
  LS_CHECK(std::isfinite(value) && value > 0, ConfigError,
           "[config.json] \"mup\" cannot be read: expected a number \"{}\" above 0, got {}.", key,
           marks.dump());
  return value;
}

nn::Mup mup_from(const OrderedJson& marks) {
  LS_CHECK(marks.is_object(), ConfigError,
           "[config.json] \"mup\" cannot be read: expected an object, got {}.", marks.dump());
  return {.width = factor_in(marks, "width"),
          .head_width = factor_in(marks, "head_width"),
          .input_multiplier = factor_in(marks, "input_multiplier"),
          .output_multiplier = factor_in(marks, "output_multiplier")};
}

}  // namespace

bool has_multipliers(const nn::Module& model) {
  const auto* const language = dynamic_cast<const nn::LanguageModel*>(&model);
  return language != nullptr && !language->mup().is_plain();
}

void require_no_multipliers(const nn::LanguageModel& model, std::string_view op) {
  LS_CHECK(model.mup().is_plain(), ConfigError,
           "[{}] the model has multipliers of muP, which the format does not hold: expected a "
           "model without. Call change_multipliers(model, {{}}) first.",
           op);
}

void mark_multipliers(const nn::Module& model, const fs::path& folder) {
  if (!has_multipliers(model)) return;
  const nn::Mup& mup = dynamic_cast<const nn::LanguageModel&>(model).mup();
  OrderedJson config = parse_ordered_json(read_whole_file(folder / kModelConfig, kMostJsonBytes));
  config["model_type"] = config.at("model_type").get<std::string>() + std::string(kTypeSuffix);
  config.erase("architectures");
  config[kMarks] = {{"width", mup.width},
                    {"head_width", mup.head_width},
                    {"input_multiplier", mup.input_multiplier},
                    {"output_multiplier", mup.output_multiplier}};
  write_text(folder / kModelConfig, config.dump(1) + "\n");
}

UnmarkedConfig unmarked(const std::string& text) {
  OrderedJson config;
  try {
    config = parse_ordered_json(text);
  } catch (const DataError&) {
    return {text, {}};  // whoever reads the rest says what is wrong
  }
  if (!config.is_object() || !config.contains(kMarks)) return {text, {}};
  const nn::Mup mup = mup_from(config[kMarks]);
  config.erase(kMarks);
  const auto found = config.find("model_type");
  std::string type =
      found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
  LS_CHECK(type.ends_with(kTypeSuffix), ConfigError,
           "[config.json] \"mup\" describes a model whose model_type ends with {}, got {:?}.",
           kTypeSuffix, type);
  type.resize(type.size() - kTypeSuffix.size());
  config["model_type"] = type;
  return {config.dump(1) + "\n", mup};
}

nn::Mup multipliers_of(const fs::path& path) {
  const fs::path config = (fs::is_directory(path) ? path : path.parent_path()) / kModelConfig;
  if (!name_exists(config)) return {};
  try {
    return unmarked(read_whole_file(config, kMostJsonBytes)).mup;
  } catch (const FileError& error) {
    throw CheckpointError(
        fmt::format("[weights] cannot read {}: {}.", config.string(), error.reason()));
  } catch (const ConfigError& error) {
    throw CheckpointError(fmt::format("[weights] {}: {}", config.string(), error.what()));
  }
}

MergedWeights without_multipliers(const nn::Module& model, MergedWeights weights) {
  if (!has_multipliers(model)) return weights;
  const auto& language = dynamic_cast<const nn::LanguageModel&>(model);
  std::unordered_map<const TensorImpl*, nn::MultipliedRows> rows_of;
  for (const nn::MultipliedRows& each : language.multiplied_rows(language.mup())) {
    if (each.factor != 1) rows_of.emplace(each.parameter.impl(), each);
  }
  std::function<Tensor(size_t)> values = std::move(weights.values);
  if (!values) values = [stored = weights.stored](size_t i) { return stored[i].tensor; };
  weights.values = [values, rows_of, stored = weights.stored](size_t i) {
    const NoGradGuard no_grad;
    const Tensor value = values(i);
    const auto found = rows_of.find(stored[i].tensor.impl());
    if (found == rows_of.end() || !value.defined()) return value;  // another rank's
    Tensor changed = value.clone();
    changed.narrow(0, 0, found->second.rows).mul_(found->second.factor);
    return changed;
  };
  return weights;
}

}  // namespace lockstep::train
