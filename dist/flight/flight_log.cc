#include "dist/flight/flight_log.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/base/parse_number.h"

namespace lockstep::dist {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "lockstep flight log";
constexpr int64_t kFormatVersion = 1;
constexpr int kMostRanks = 1 << 20;
constexpr int kMaskBits = 64;

constexpr std::array kKinds = {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                               OpKind::kBroadcast, OpKind::kReduce,        OpKind::kAllToAll,
                               OpKind::kBarrier,   OpKind::kSend,          OpKind::kReceive};
constexpr std::array kStates = {FlightRecord::State::kQueued, FlightRecord::State::kStarted,
                                FlightRecord::State::kDone, FlightRecord::State::kFailed};
constexpr std::array<std::pair<ReduceOp, const char*>, 5> kReduceOps = {
    {{ReduceOp::kSum, "sum"},
     {ReduceOp::kProduct, "product"},
     {ReduceOp::kMin, "min"},
     {ReduceOp::kMax, "max"},
     {ReduceOp::kPremultipliedSum, "premultiplied_sum"}}};

const char* reduce_op_name(ReduceOp op) {
  for (const auto& [known, text] : kReduceOps) {
    if (known == op) return text;
  }
  return "unknown";
}

// As text: many JSON readers convert numbers to double, which would lose bits of the id.
std::string hex_text(uint64_t number) { return fmt::format("{:016x}", number); }

std::vector<int> bits_of(uint64_t mask) {
  std::vector<int> bits;
  for (int bit = 0; bit < kMaskBits; ++bit) {
    if ((mask >> bit & 1) != 0) bits.push_back(bit);
  }
  return bits;
}

Json to_json(const FlightGroup& group) {
  Json json = {{"id", hex_text(group.id)}, {"name", group.name}, {"ranks", group.ranks}};
  if (group.newest) json["newest"] = *group.newest;
  return json;
}

Json to_json(const FlightRecord& record) {
  const Signature& signature = record.signature;
  Json json = {{"operation", to_string(signature)},
               {"group", hex_text(signature.group)},
               {"group_name", record.group_name},
               {"sequence", signature.sequence},
               {"state", name(record.state)},
               {"awaited_ranks", bits_of(record.awaited_ranks)},
               {"kind", name(signature.kind)},
               {"dtype", to_string(signature.dtype)},
               {"count", signature.count},
               {"reduction", reduce_op_name(signature.reduction.op)},
               {"root", signature.root},
               {"tensors", record.tensors},
               {"user_tag", record.user_tag},
               {"queued_ns", record.queued_ns},
               {"started_ns", record.started_ns},
               {"ended_ns", record.ended_ns}};
  if (record.label[0] != '\0') json["label"] = record.label;
  if (signature.reduction.leaves != 0) json["leaves"] = signature.reduction.leaves;
  if (signature.deal != 0) json["deal"] = hex_text(signature.deal);
  const double factor = signature.reduction.factor;
  if (factor != 1)
    json["factor"] = std::isfinite(factor) ? Json(factor) : Json(fmt::format("{}", factor));
  return json;
}

/// Json::get would take fractions, and has undefined behaviour for numbers out of range.
template <class T>
T integer(const Json& object, const char* name) {
  const Json& json = object.at(name);
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
  if (!fits) throw std::invalid_argument(fmt::format("\"{}\" is not an integer in range", name));
  return json.get<T>();
}

/// Returns an integer member, which must be in [low, high].
int bounded(const Json& object, const char* name, int low, int high) {
  const int value = integer<int>(object, name);
  if (value < low || value > high) {
    throw std::invalid_argument(
        fmt::format("\"{}\" is {}, not from {} to {}", name, value, low, high));
  }
  return value;
}

std::string text(const Json& object, const char* name) {
  return object.at(name).get<std::string>();
}

const Json& list(const Json& object, const char* name) {
  const Json& json = object.at(name);
  if (!json.is_array()) throw std::invalid_argument(fmt::format("\"{}\" is no list", name));
  return json;
}

uint64_t hex_number(const Json& object, const char* name) {
  const std::string digits = text(object, name);
  uint64_t id = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  if (digits.size() != 16 || failure != std::errc() || end != digits.data() + digits.size()) {
    throw std::invalid_argument(fmt::format("\"{}\" is not 16 hexadecimal digits", name));
  }
  return id;
}

/// Returns the element of `known` whose name is the value of `member`.
template <class T, size_t N, class Name>
T named(const Json& object, const char* member, const std::array<T, N>& known, Name name_of) {
  const std::string wanted = text(object, member);
  for (const T& value : known) {
    if (name_of(value) == wanted) return value;
  }
  throw std::invalid_argument(fmt::format("\"{}\" is an unknown \"{:.40}\"", member, wanted));
}

double factor_from(const Json& object) {
  const auto found = object.find("factor");
  if (found == object.end()) return 1;
  if (found->is_number()) return found->get<double>();
  const std::optional<double> value = parse_number<double>(found->get<std::string>());
  if (!value) throw std::invalid_argument("\"factor\" is no number");
  return *value;
}

FlightGroup group_from(const Json& json, int world_size) {
  FlightGroup group{
      .id = hex_number(json, "id"), .name = text(json, "name"), .ranks = {}, .newest = {}};
  for (const Json& rank : list(json, "ranks")) {
    group.ranks.push_back(bounded({{"rank", rank}}, "rank", 0, world_size - 1));
  }
  if (json.contains("newest")) group.newest = integer<uint64_t>(json, "newest");
  return group;
}

FlightRecord record_from(const Json& json) {
  FlightRecord record;
  Signature& signature = record.signature;
  signature.group = hex_number(json, "group");
  signature.sequence = integer<uint64_t>(json, "sequence");
  signature.kind = named(json, "kind", kKinds, [](OpKind kind) { return name(kind); });
  const std::optional<DType> dtype = parse_dtype(text(json, "dtype"));
  if (!dtype) throw std::invalid_argument("\"dtype\" is unknown");
  signature.dtype = *dtype;
  signature.reduction.op =
      named(json, "reduction", kReduceOps, [](const auto& op) { return op.second; }).first;
  signature.reduction.factor = factor_from(json);
  if (json.contains("leaves")) signature.reduction.leaves = integer<int32_t>(json, "leaves");
  if (json.contains("deal")) signature.deal = hex_number(json, "deal");
  signature.root = integer<int>(json, "root");
  signature.count = integer<int64_t>(json, "count");
  set_group_name(record, text(json, "group_name"));
  if (json.contains("label")) set_label(record, text(json, "label"));
  record.state =
      named(json, "state", kStates, [](FlightRecord::State state) { return name(state); });
  for (const Json& rank : list(json, "awaited_ranks")) {
    record.awaited_ranks |= uint64_t{1} << bounded({{"rank", rank}}, "rank", 0, kMaskBits - 1);
  }
  record.tensors = integer<uint32_t>(json, "tensors");
  record.user_tag = integer<uint32_t>(json, "user_tag");
  record.queued_ns = integer<int64_t>(json, "queued_ns");
  record.started_ns = integer<int64_t>(json, "started_ns");
  record.ended_ns = integer<int64_t>(json, "ended_ns");
  return record;
}

FlightLog log_from(const Json& json) {
  if (!json.is_object() || json.value("format", "") != kFormat) {
    throw std::invalid_argument(fmt::format("this is no {}", kFormat));
  }
  const auto version = integer<int64_t>(json, "format_version");
  if (version != kFormatVersion) {
    throw std::invalid_argument(
        fmt::format("its format version is {}, this program reads {}", version, kFormatVersion));
  }
  FlightLog log;
  log.world_size = bounded(json, "world_size", 1, kMostRanks);
  log.rank = bounded(json, "rank", 0, log.world_size - 1);
  if (json.contains("start")) log.start = text(json, "start");
  log.host = text(json, "host");
  log.process = integer<int64_t>(json, "process");
  log.reason = text(json, "reason");
  log.written_ns = integer<int64_t>(json, "written_ns");
  log.recorded = integer<uint64_t>(json, "recorded");
  for (const Json& group : list(json, "groups")) {
    log.groups.push_back(group_from(group, log.world_size));
  }
  const Json& records = list(json, "operations");
  for (size_t i = 0; i < records.size(); ++i) {
    try {
      log.records.push_back(record_from(records.at(i)));
    } catch (const std::exception& error) {
      throw std::invalid_argument(fmt::format("operation {}: {}", i, error.what()));
    }
  }
  return log;
}

/// Formats a list with one element a line, so that the file can be searched by line.
template <class T>
std::string lines_of(const std::vector<T>& elements) {
  std::string text = "[";
  for (size_t i = 0; i < elements.size(); ++i) {
    text += i == 0 ? "\n  " : ",\n  ";
    text += to_json(elements[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text + "]";
}

}  // namespace

std::string format_flight_log(const FlightLog& log) {
  const Json head = {{"format", kFormat},
                     {"format_version", kFormatVersion},
                     {"rank", log.rank},
                     {"world_size", log.world_size},
                     {"start", log.start},
                     {"host", log.host},
                     {"process", log.process},
                     {"reason", log.reason},
                     {"written_ns", log.written_ns},
                     {"recorded", log.recorded}};
  std::string text = head.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind('\n'));  // without the closing brace: more members follow
  return fmt::format("{},\n \"groups\": {},\n \"operations\": {}\n}}\n", text, lines_of(log.groups),
                     lines_of(log.records));
}

FlightLog parse_flight_log(std::string_view text, std::string_view origin) {
  try {
    return log_from(parse_ordered_json(text));
  } catch (const JsonSyntaxError& error) {
    throw DataError(fmt::format("[flight log] {}: not JSON from byte {} on. Is the file whole?",
                                origin, error.byte()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("[flight log] {}: {}", origin, error.what()));
  } catch (const std::exception& error) {
    throw DataError(fmt::format("[flight log] {}: {}.", origin, error.what()));
  }
}

FlightLog read_flight_log(const std::filesystem::path& file) {
  std::string text;
  try {
    text = read_whole_file(file, kMostJsonBytes);
  } catch (const FileError& error) {
    throw DataError(fmt::format("[flight log] {}: the file cannot be read: {}.", file.string(),
                                error.reason()));
  }
  return parse_flight_log(text, file.string());
}

}  // namespace lockstep::dist
