#include "configs/bit_flip.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/parse_number.h"

namespace lockstep::config {
namespace {

constexpr std::string_view kUpdate = "update";

int64_t number(std::string_view key, std::string_view text, int64_t least, int64_t most) {
  const std::optional<int64_t> value = parse_number<int64_t>(text);
  LS_CHECK(value && *value >= least && *value <= most, ConfigError,
           "[inject.flip] {} is {:?}: expected a whole number from {} to {}.", key, text, least,
           most);
  return *value;
}

void set(BitFlip& flip, std::string_view key, std::string_view value) {
  constexpr int64_t kMost = int64_t{1} << 60;
  if (key == "step") {
    flip.step = number(key, value, 1, kMost);
  } else if (key == "micro_batch") {
    flip.micro_batch.reset();
    if (value != kUpdate) flip.micro_batch = number(key, value, 0, kMost);
  } else if (key == "operator") {
    flip.operator_name = value;
  } else if (key == "call") {
    flip.call = number(key, value, 1, kMost);
  } else if (key == "result") {
    flip.result = number(key, value, 0, kMost);
  } else if (key == "element") {
    flip.element = number(key, value, 0, kMost);
  } else if (key == "bit") {
    flip.bit = number(key, value, 0, 63);
  } else {
    throw ConfigError(fmt::format(
        "[inject.flip] has no part {:?}: expected step, operator, call, element and bit, and where "
        "wanted micro_batch and result.",
        key));
  }
}

}  // namespace

BitFlip parse_flip(std::string_view text) {
  BitFlip flip;
  std::set<std::string_view> given;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    LS_CHECK(equals != part.npos, ConfigError,
             "[inject.flip] part {:?}: expected NAME=VALUE, as in "
             "\"step=13,operator=native_layer_norm,call=3,element=17,bit=0\".",
             part);
    const std::string_view key = part.substr(0, equals);
    LS_CHECK(given.insert(key).second, ConfigError, "[inject.flip] gives {} twice: expected once.",
             key);
    set(flip, key, part.substr(equals + 1));
    begin = end + 1;
  }
  for (const std::string_view key : {"step", "operator", "call", "element", "bit"}) {
    LS_CHECK(given.contains(key), ConfigError,
             "[inject.flip] {:?} has no {}: expected step, operator, call, element and bit.", text,
             key);
  }
  return flip;
}

std::string to_text(const BitFlip& flip) {
  return fmt::format("step={},micro_batch={},operator={},call={},result={},element={},bit={}",
                     flip.step,
                     flip.micro_batch ? fmt::format("{}", *flip.micro_batch) : std::string(kUpdate),
                     flip.operator_name, flip.call, flip.result, flip.element, flip.bit);
}

std::optional<BitFlip> flip_of(const RunConfig& config) {
  if (config.inject().flip().empty()) return std::nullopt;
  return parse_flip(config.inject().flip());
}

void check_flip(const RunConfig& config, const Origins& origins) {
  try {
    const std::optional<BitFlip> flip = flip_of(config);
    if (!flip || !flip->micro_batch) return;
    const int64_t count = config.train().batch_size() / config.train().micro_batch_size();
    LS_CHECK(*flip->micro_batch < count, ConfigError,
             "[inject.flip] micro_batch is {}: expected one of the {} of a step, from 0.",
             *flip->micro_batch, count);
  } catch (const ConfigError& error) {
    fail(origins, "inject.flip", error.what());
  }
}

}  // namespace lockstep::config
