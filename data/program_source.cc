#include "data/program_source.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/parse_json.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;

constexpr int kProtocol = 1;

/// Asks the program, and returns the object of its answer. Throws DataError for another one, and
/// for the error that it tells of.
Json answer(ChildProgram& program, const std::string& request) {
  const auto refuse = [&](const std::string& problem) {
    throw DataError(
        fmt::format("[data] the program `{}`, asked {}: {}.", program.command(), request, problem));
  };
  const std::string line = program.ask(request);
  Json object;
  try {
    object = parse_json(line);
  } catch (const DataError&) {
    refuse(
        fmt::format("expected a line of JSON, got {:?}. Is something else printed to standard "
                    "output",
                    line.substr(0, 100)));
  }
  if (!object.is_object()) refuse(fmt::format("expected an object, got {}", line.substr(0, 100)));
  if (const auto error = object.find("error"); error != object.end()) {
    refuse(error->is_string() ? error->get<std::string>() : error->dump());
  }
  return object;
}

int64_t number_of(const Json& object, const char* name, const ChildProgram& program) {
  const auto found = object.find(name);
  LS_CHECK(found != object.end() && found->is_number_integer() && found->get<int64_t>() >= 0,
           DataError, "[data] the program `{}` answered {}: expected {:?} with a whole number.",
           program.command(), object.dump(), name);
  return found->get<int64_t>();
}

}  // namespace

ProgramSource::ProgramSource(ProgramSourceOptions options)
    : options_(std::move(options)), program_(options_.command, options_.timeout) {
  const Json request = {{"begin",
                         {{"protocol", kProtocol},
                          {"vocabulary", options_.vocabulary},
                          {"seed", options_.seed},
                          {"sequences_per_step", options_.sequences_per_step},
                          {"length", options_.length}}}};
  const MutexLock lock(mutex_);
  const Json object = answer(program_, request.dump());
  const auto identity = object.find("identity");
  LS_CHECK(identity != object.end() && identity->is_string(), DataError,
           "[data] the program `{}` answered {}: expected \"identity\" with a text that names its "
           "data.",
           program_.command(), object.dump());
  fingerprint_ = ContentHasher().add("program").add(identity->get<std::string>()).result();
}

void ProgramSource::fill(const std::string& request, std::span<int64_t> inputs,
                         std::span<int64_t> targets) const {
  const size_t length = inputs.size();
  std::vector<int32_t> values(2 * length);
  const MutexLock lock(mutex_);
  const Json object = answer(program_, request);
  const int64_t count = number_of(object, "values", program_);
  LS_CHECK(count == std::ssize(values), DataError,
           "[data] the program `{}`, asked {}: expected {} numbers, inputs and then targets, got "
           "{}.",
           program_.command(), request, values.size(), count);
  program_.read(std::as_writable_bytes(std::span(values)));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i];
    const bool is_target = i >= length;
    const bool fits =
        (value >= 0 && value < options_.vocabulary) || (is_target && value == kIgnoredTarget);
    LS_CHECK(fits, DataError,
             "[data] the program `{}`, asked {}: {} {} is {}: expected one in [0, {}){}.",
             program_.command(), request, is_target ? "target" : "input", i % length, value,
             options_.vocabulary,
             is_target ? fmt::format(", or {} for one that does not count", kIgnoredTarget) : "");
    (is_target ? targets : inputs)[i % length] = value;
  }
}

void ProgramSource::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                             std::span<int64_t> targets) const {
  const Json request = {
      {"sequence", {{"step", step}, {"index", index}, {"length", inputs.size()}}}};
  fill(request.dump(), inputs, targets);
}

int64_t ProgramSource::validation_windows(int64_t length) const {
  const MutexLock lock(mutex_);
  if (const auto known = windows_.find(length); known != windows_.end()) return known->second;
  const Json request = {{"held_out_windows", {{"length", length}}}};
  const int64_t windows = number_of(answer(program_, request.dump()), "windows", program_);
  windows_.emplace(length, windows);
  return windows;
}

int64_t ProgramSource::validation_window(int64_t index, std::span<int64_t> inputs,
                                         std::span<int64_t> targets) const {
  const Json request = {{"held_out", {{"index", index}, {"length", inputs.size()}}}};
  fill(request.dump(), inputs, targets);
  int64_t real = 0;
  for (const int64_t target : targets) real += target != kIgnoredTarget ? 1 : 0;
  return real;
}

}  // namespace lockstep::train
