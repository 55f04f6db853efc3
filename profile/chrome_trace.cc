#include "profile/chrome_trace.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/gzip.h"
#include "profile/memory_use.h"
#include "profile/trace_names.h"

namespace lockstep::profile {

namespace {

using Json = nlohmann::ordered_json;

const char* category(SpanKind kind) {
  switch (kind) {
    case SpanKind::kOperator:
    case SpanKind::kNode:
      return "cpu_op";
    case SpanKind::kLaunch:
      return "cuda_runtime";
    case SpanKind::kKernel:
      return "kernel";
    default:
      return "user_annotation";
  }
}

/// An operator's name as its namespace, base name and overload: "add.Tensor" is aten::add, Tensor.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const size_t dot = name.find('.');
  std::string base = name.substr(0, dot);
  if (base.find("::") == std::string::npos) base.insert(0, kAten);
  return {base, dot == std::string::npos ? "" : name.substr(dot + 1)};
}

/// In a merged trace the devices of rank R are the processes from (R + 1) times this on.
constexpr int64_t kDevices = 1'000'000;

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

/// The members of a trace before its events.
Json head_of(const Profile& profile) {
  Json head = {{"schemaVersion", 1}, {"deviceProperties", Json::array()}};
  head["distributedInfo"] = {{"backend", profile.rank.backend},
                             {"rank", profile.rank.rank},
                             {"world_size", profile.rank.size}};
  head["displayTimeUnit"] = "ms";
  head["baseTimeNanoseconds"] = profile.begin_unix_ns;
  return head;
}

/// What only our own readers need.
Json own_members(const Profile& profile) {
  Json threads = Json::array();
  for (const ProfileThread& thread : profile.threads) {
    threads.push_back({{"id", thread.id},
                       {"name", thread.name},
                       {"lost", thread.lost},
                       {"device", thread.device},
                       {"stream", thread.stream}});
  }
  Json memory;
  if (profile.memory) {
    memory = {{"device", profile.memory->device},
              {"begin_bytes", profile.memory->begin_bytes},
              {"end_bytes", profile.memory->end_bytes}};
  }
  return {{"host", profile.rank.host},
          {"process", profile.process},
          {"clock_offset_ns", profile.rank.clock_offset_ns},
          {"duration_ns", profile.duration_ns},
          {"memory", std::move(memory)},
          {"threads", std::move(threads)},
          {"threads_without_buffer", profile.threads_without_buffer},
          {"lost_work", profile.lost_work}};
}

/// The text of a trace whose events `write` adds to the text it is given.
template <class Write>
std::string trace_text(const Json& head, const Write& write) {
  std::string text = head.dump();
  text.back() = ',';
  text += "\"traceEvents\":[\n";
  write(text);
  if (text.ends_with(",\n")) text.resize(text.size() - 2);
  return text + "\n]}\n";
}

/// Appends the events of one profile.
class EventWriter {
 public:
  /// Events get ids from `first_id`, and are of process `process`; devices are processes from
  /// `first_device` on.
  EventWriter(const Profile& profile, int64_t process, int64_t first_device, size_t first_id,
              std::string& text)
      : profile_(profile),
        process_(process),
        first_device_(first_device),
        first_id_(first_id),
        text_(text) {}

  void write() {
    add_metadata();
    for (size_t i = 0; i < profile_.spans.size(); ++i) add_span(i);
    for (const MemoryMoment& moment : memory_timeline(profile_)) add_counters(moment);
  }

 private:
  void add(const Json& event) {
    // Names may hold anything; what is not UTF-8 is replaced.
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
    text_ += ",\n";
  }

  /// Where Perfetto shows a thread. A stream of a device is a thread of that device, as in
  /// PyTorch's traces.
  struct Place {
    int64_t pid;
    uint64_t tid;
  };
  Place place_of(const ProfileThread& thread) const {
    if (thread.device < 0) return {process_, thread.id};
    return {first_device_ + thread.device, static_cast<uint64_t>(thread.stream)};
  }
  Place place_of(const ProfileSpan& span) const { return place_of(profile_.threads[span.thread]); }

  void add_name(const char* what, Place place, const char* key, const Json& value) {
    add({{"ph", "M"},
         {"name", what},
         {"ts", 0.0},
         {"pid", place.pid},
         {"tid", place.tid},
         {"args", {{key, value}}}});
  }

  void add_process(int64_t pid, const std::string& name, const char* label, int64_t order) {
    add_name("process_name", {pid, 0}, "name", name);
    add_name("process_labels", {pid, 0}, "labels", label);
    add_name("process_sort_index", {pid, 0}, "sort_index", order);
  }

  void add_metadata() {
    const std::string rank =
        fmt::format("lockstep, rank {}{}{}", profile_.rank.rank,
                    profile_.rank.host.empty() ? "" : " on ", profile_.rank.host);
    add_process(process_, rank, "CPU", 2 * profile_.rank.rank);
    std::set<int> devices;
    for (size_t i = 0; i < profile_.threads.size(); ++i) {
      const ProfileThread& thread = profile_.threads[i];
      if (thread.device >= 0 && devices.insert(thread.device).second) {
        add_process(place_of(thread).pid, rank, fmt::format("device {}", thread.device).c_str(),
                    2 * profile_.rank.rank + 1);
      }
      add_name("thread_name", place_of(thread), "name",
               thread.device >= 0 ? fmt::format("stream {}", thread.stream)
                                  : fmt::format("{} {}", thread.name, thread.id));
      add_name("thread_sort_index", place_of(thread), "sort_index", i);
    }
  }

  void add_span(size_t index) {
    const ProfileSpan& span = profile_.spans[index];
    Json args = {{"External id", first_id_ + index}, {"Ev Idx", index}};
    if (span.parent != ProfileSpan::kNone) args["Parent Idx"] = span.parent;
    args["Kind"] = name(span.kind);
    args["Phase"] = name(span.phase);
    if (span.step != ProfileSpan::kNone) args["Step"] = span.step;
    if (span.cut) args["Cut"] = true;
    if (!span.module.empty()) args["Module"] = span.module;
    if (!span.note.empty()) args["Note"] = span.note;
    if (span.sequence != 0) args["Sequence number"] = span.sequence;
    if (span.cause != ProfileSpan::kNone) args["Cause Idx"] = span.cause;
    if (span.flops != 0) args["FLOPs"] = span.flops;
    if (span.bytes != 0) args["Bytes"] = span.bytes;
    std::string title = span.name;
    if (span.kind == SpanKind::kOperator) {
      const auto [base, overload] = split_name(span.name);
      title = base;
      if (!overload.empty()) args["Overload"] = overload;
      args["DType"] = name(span.dtype);
      add_arguments(span, args);
    } else if (span.kind == SpanKind::kNode) {
      title.insert(0, kNodePrefix);
      if (span.cause != ProfileSpan::kNone) {
        args["Fwd thread id"] = place_of(cause_of(span)).tid;
      }
    } else if (span.kind == SpanKind::kStep) {
      title = fmt::format("{}{}", kStepPrefix, span.step);
    }
    if (span.kind == SpanKind::kCollective) {
      args["Collective name"] = span.name;
      args["Process Group Name"] = span.note;
      if (!span.label.empty()) args["Label"] = span.label;
      args["DType"] = name(span.dtype);
    }
    if (span.kind == SpanKind::kLaunch || span.kind == SpanKind::kKernel) {
      args["correlation"] = span.sequence;
    }
    const ProfileThread& thread = profile_.threads[span.thread];
    args["Thread"] = span.thread;
    if (thread.device >= 0) {
      args["device"] = thread.device;
      args["stream"] = thread.stream;
      args["DType"] = name(span.dtype);
    }
    const Place place = place_of(thread);
    if (span.kind == SpanKind::kMemory) {
      args["Addr"] = span.sequence;
      args["Device Type"] = 0;
      args["Device Id"] = -1;
      add({{"ph", "i"},
           {"cat", "cpu_instant_event"},
           {"name", "[memory]"},
           {"s", "t"},
           {"pid", place.pid},
           {"tid", place.tid},
           {"ts", us(span.begin_ns)},
           {"args", std::move(args)}});
      return;
    }
    add({{"ph", "X"},
         {"cat", category(span.kind)},
         {"name", title},
         {"pid", place.pid},
         {"tid", place.tid},
         {"ts", us(span.begin_ns)},
         {"dur", us(span.duration_ns)},
         {"args", std::move(args)}});
    if (span.cause != ProfileSpan::kNone) add_arrow(first_id_ + index, cause_of(span), span);
  }

  static void add_arguments(const ProfileSpan& span, Json& args) {
    Json dims = Json::array(), types = Json::array(), values = Json::array();
    for (const ArgumentInfo& argument : span.arguments) {
      if (argument.type == "TensorList") {
        dims.push_back(argument.sizes_of_list);
      } else {
        dims.push_back(argument.sizes);
      }
      types.push_back(argument.type);
      values.push_back(argument.value);
    }
    args["Input Dims"] = std::move(dims);
    args["Input type"] = std::move(types);
    args["Concrete Inputs"] = std::move(values);
  }

  /// Perfetto draws them as stacked areas.
  void add_counters(const MemoryMoment& moment) {
    Json bytes;
    for (int i = 0; i < kMemoryUses; ++i) {
      bytes[name(static_cast<MemoryUse>(i))] = moment.bytes[static_cast<size_t>(i)];
    }
    add({{"ph", "C"},
         {"name", "memory by use"},
         {"pid", process_},
         {"ts", us(moment.at_ns)},
         {"args", std::move(bytes)}});
  }

  const ProfileSpan& cause_of(const ProfileSpan& span) const {
    return profile_.spans[static_cast<size_t>(span.cause)];
  }

  void add_arrow(size_t id, const ProfileSpan& from, const ProfileSpan& to) {
    const char* const kind = to.kind == SpanKind::kKernel ? "ac2g" : "fwdbwd";
    const auto end = [&](const char* ph, const ProfileSpan& span) {
      const Place place = place_of(span);
      return Json{{"ph", ph},
                  {"id", id},
                  {"pid", place.pid},
                  {"tid", place.tid},
                  {"ts", us(span.begin_ns)},
                  {"cat", kind},
                  {"name", kind}};
    };
    add(end("s", from));
    Json arrival = end("f", to);
    arrival["bp"] = "e";
    add(arrival);
  }

  const Profile& profile_;
  int64_t process_;
  int64_t first_device_;
  size_t first_id_;
  std::string& text_;
};

}  // namespace

std::string trace_json(const Profile& profile) {
  Json head = head_of(profile);
  head["lockstep"] = own_members(profile);
  return trace_text(
      head, [&](std::string& text) { EventWriter(profile, profile.process, 0, 1, text).write(); });
}

std::string merged_trace_json(const std::vector<Profile>& profiles) {
  LS_CHECK(!profiles.empty(), DataError, "[profile] there is no profile to merge.");
  return trace_text(head_of(profiles.front()), [&](std::string& text) {
    size_t first_id = 1;
    for (const Profile& profile : profiles) {
      EventWriter(profile, profile.rank.rank, kDevices * (1 + profile.rank.rank), first_id, text)
          .write();
      first_id += profile.spans.size();
    }
  });
}

void write_trace(const std::string& path, const Profile& profile) {
  const std::string text = trace_json(profile);
  AtomicFile file(path);
  file.write(gzipped(std::as_bytes(std::span(text))));
  file.publish();
}

}  // namespace lockstep::profile
