#include "configs/variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "configs/field_list.h"
#include "configs/program_variables.h"
#include "configs/run.pb.h"
#include "core/base/nearest.h"

namespace lockstep::config {
namespace {

constexpr std::string_view kPrefix = "LOCKSTEP_";

bool is_program_variable(const std::string& name) {
  return std::ranges::any_of(program_variables(),
                             [&](const ProgramVariable& known) { return name == known.name; });
}

/// Returns a map from variable name to field path.
std::map<std::string, std::string> field_variables() {
  std::map<std::string, std::string> variables;
  for (const std::string& path : field_paths()) variables.emplace(variable_name(path), path);
  return variables;
}

std::string unknown_variable(const std::string& name,
                             const std::map<std::string, std::string>& fields) {
  std::vector<std::string_view> known;
  for (const auto& [variable, path] : fields) known.emplace_back(variable);
  for (const ProgramVariable& variable : program_variables()) known.emplace_back(variable.name);
  const std::optional<std::string_view> meant = nearest(name, known);
  return fmt::format("{} names no field of a config and no setting of the program. {}", name,
                     meant ? fmt::format("Did you mean {}?", *meant)
                           : "Fields are written like LOCKSTEP_TRAIN_STEPS for train.steps.");
}

}  // namespace

std::string variable_name(std::string_view path) {
  std::string name(kPrefix);
  for (const char c : path) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

void apply_variables(RunConfig& config, Origins& origins, const Variables& variables) {
  check_program_variables(variables);
  const std::map<std::string, std::string> fields = field_variables();
  for (const auto& [name, value] : variables) {
    if (is_program_variable(name)) continue;
    const std::string where = fmt::format("{}={}", name, value);
    const auto field = fields.find(name);
    if (field == fields.end()) throw SourceError(where, unknown_variable(name, fields));
    if (value.empty()) continue;
    set_value(config, origins, fmt::format("{}={}", field->second, value), where);
  }
}

}  // namespace lockstep::config
