#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/files/gzip.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "profile/chrome_trace.h"
#include "profile/trace_names.h"

namespace lockstep::profile {

namespace {

std::string joined_name(std::string base, const std::string& overload) {
  if (base.starts_with(kAten)) base.erase(0, kAten.size());
  return overload.empty() ? base : base + "." + overload;
}

SpanKind parse_kind(const std::string& text) {
  for (int i = 0; i < kSpanKinds; ++i) {
    if (text == name(static_cast<SpanKind>(i))) return static_cast<SpanKind>(i);
  }
  throw DataError("the kind \"" + text + "\" is unknown");
}

Phase parse_phase(const std::string& text) {
  for (int i = 0; i < kPhases; ++i) {
    if (text == name(static_cast<Phase>(i))) return static_cast<Phase>(i);
  }
  throw DataError("the phase \"" + text + "\" is unknown");
}

int64_t ns(const nlohmann::json& us) { return std::llround(us.get<double>() * 1e3); }

std::vector<ArgumentInfo> arguments_of(const nlohmann::json& args) {
  std::vector<ArgumentInfo> arguments;
  for (size_t i = 0; i < args.at("Input type").size(); ++i) {
    ArgumentInfo& argument = arguments.emplace_back();
    argument.type = args.at("Input type")[i];
    argument.value = args.at("Concrete Inputs").at(i);
    const nlohmann::json& dims = args.at("Input Dims").at(i);
    if (argument.type == "TensorList") {
      argument.sizes_of_list = dims.get<std::vector<std::vector<int64_t>>>();
    } else {
      argument.sizes = dims.get<std::vector<int64_t>>();
    }
  }
  return arguments;
}

ProfileSpan read_span(const nlohmann::json& event, const Profile& profile) {
  const nlohmann::json& args = event.at("args");
  ProfileSpan span;
  span.kind = parse_kind(args.at("Kind"));
  span.phase = parse_phase(args.at("Phase"));
  span.cut = args.value("Cut", false);
  span.parent = args.value("Parent Idx", ProfileSpan::kNone);
  span.cause = args.value("Cause Idx", ProfileSpan::kNone);
  span.begin_ns = ns(event.at("ts"));
  if (event.contains("dur")) span.duration_ns = span.self_ns = ns(event.at("dur"));
  span.step = args.value("Step", ProfileSpan::kNone);
  span.sequence = args.value("Sequence number", uint64_t{0});
  span.flops = args.value("FLOPs", int64_t{0});
  span.bytes = args.value("Bytes", int64_t{0});
  span.module = args.value("Module", "");
  span.note = args.value("Note", "");
  span.label = args.value("Label", "");
  span.name = event.at("name");
  span.thread = args.at("Thread");
  LS_CHECK(span.thread < profile.threads.size(), DataError,
           "a span is of a thread that is not listed");
  if (args.contains("DType")) {
    span.dtype = parse_dtype(args.at("DType").get<std::string>()).value_or(DType::kF32);
  }
  if (span.kind == SpanKind::kOperator) {
    span.name = joined_name(span.name, args.value("Overload", ""));
    span.arguments = arguments_of(args);
  } else if (span.kind == SpanKind::kNode && span.name.starts_with(kNodePrefix)) {
    span.name.erase(0, kNodePrefix.size());
  } else if (span.kind == SpanKind::kStep) {
    span.name = "step";
  } else if (span.kind == SpanKind::kMemory) {
    span.name = span.bytes < 0 ? "free" : "allocate";
  }
  return span;
}

Profile read_document(const nlohmann::json& json) {
  Profile profile;
  const nlohmann::json& own = json.at("lockstep");
  const nlohmann::json& ranks = json.at("distributedInfo");
  profile.rank = {.rank = ranks.at("rank"),
                  .size = ranks.at("world_size"),
                  .host = own.at("host"),
                  .backend = ranks.at("backend"),
                  .clock_offset_ns = own.at("clock_offset_ns")};
  profile.process = own.at("process");
  profile.begin_unix_ns = json.at("baseTimeNanoseconds");
  profile.duration_ns = own.at("duration_ns");
  profile.threads_without_buffer = own.at("threads_without_buffer");
  profile.lost_work = own.value("lost_work", uint64_t{0});  // older traces have none
  if (const nlohmann::json& memory = own.at("memory"); !memory.is_null()) {
    profile.memory = {memory.at("device"), memory.at("begin_bytes"), memory.at("end_bytes")};
  }
  for (const nlohmann::json& thread : own.at("threads")) {
    profile.threads.push_back({thread.at("id"), thread.at("name"), thread.at("lost"),
                               thread.at("device"), thread.at("stream")});
  }
  for (const nlohmann::json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X" && event.at("ph") != "i") continue;
    ProfileSpan span = read_span(event, profile);
    const auto here = static_cast<int64_t>(profile.spans.size());
    LS_CHECK(span.parent < here && span.parent >= ProfileSpan::kNone, DataError,
             "span {} is inside a later one", here);
    if (span.parent != ProfileSpan::kNone) {
      profile.spans[static_cast<size_t>(span.parent)].self_ns -= span.duration_ns;
    }
    if (span.kind == SpanKind::kStep) {
      span.sequence = static_cast<uint64_t>(std::max<int64_t>(span.step, 0));
      profile.steps.push_back(span.step);
    }
    profile.spans.push_back(std::move(span));
  }
  for (const ProfileSpan& span : profile.spans) {
    LS_CHECK(
        span.cause >= ProfileSpan::kNone && span.cause < static_cast<int64_t>(profile.spans.size()),
        DataError, "a span's cause is not there");
  }
  return profile;
}

}  // namespace

Profile read_trace(std::string_view json, const std::string& origin) {
  try {
    return read_document(parse_json(json));
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("[profile] {} is no trace of a Lockstep profile: {}. Expected a "
                    "file that `lockstep train --profile` wrote.",
                    origin, error.what()));
  }
}

Profile read_trace_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_whole_bytes(path);
  std::span<const std::byte> left(bytes);
  const ByteSource source = gunzipped(
      [&](std::span<std::byte> into) {
        const size_t count = std::min(into.size(), left.size());
        std::copy_n(left.begin(), count, into.begin());
        left = left.subspan(count);
        return count;
      },
      path);
  std::string text;
  std::vector<std::byte> piece(size_t{1} << 20);
  while (const size_t got = source(piece)) {
    text.append(reinterpret_cast<const char*>(piece.data()), got);
  }
  return read_trace(text, path);
}

}  // namespace lockstep::profile
