#include "core/memory/snapshot.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "core/base/check.h"
#include "core/memory/pickle.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;
using Action = TraceEntry::Action;

std::string_view text(const char* text) { return text != nullptr ? text : ""; }

int64_t max_split_size(const AllocatorOptions& options) {
  return options.max_split_size == AllocatorOptions::kUnlimited
             ? -1
             : static_cast<int64_t>(options.max_split_size);
}

std::string line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Numbers call stacks, so that a stack that many entries share is written once.
class Stacks {
 public:
  /// Number of the stack; -1 for an empty one.
  int number(const CallStack& stack) {
    if (stack.empty()) return -1;
    const auto [place, is_new] = numbers_.try_emplace(stack, static_cast<int>(stacks_.size()));
    if (is_new) stacks_.push_back(stack);
    return place->second;
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    CallStack::KnownFrames known;
    for (const CallStack& stack : stacks_) {
      Json frames = Json::array();
      for (const CallStack::Frame& frame : stack.frames(known)) frames.push_back(to_string(frame));
      lines.push_back(line(frames));
    }
    return lines;
  }

 private:
  std::map<CallStack, int> numbers_;
  std::vector<CallStack> stacks_;
};

void add_context(Json& object, const AllocationContext& context, Stacks& stacks) {
  if (context.op != nullptr) object["op"] = context.op;
  if (!context.module.empty()) object["module"] = context.module;
  if (context.op != nullptr) object["phase"] = name(context.phase);
  const int number = stacks.number(context.stack);
  if (number >= 0) object["stack"] = number;
}

Json json_of(const BlockInfo& block, Stacks& stacks) {
  Json object = {{"address", block.address},
                 {"size", block.size},
                 {"requested_size", block.requested_size},
                 {"state", name(block.state)}};
  add_context(object, block.context, stacks);
  return object;
}

Json json_of(const SegmentInfo& segment, Stacks& stacks) {
  Json blocks = Json::array();
  for (const BlockInfo& block : segment.blocks) blocks.push_back(json_of(block, stacks));
  return {{"address", segment.address},
          {"total_size", segment.total_size},
          {"allocated_size", segment.allocated_size},
          {"active_size", segment.active_size},
          {"requested_size", segment.requested_size},
          {"stream", segment.stream},
          {"segment_type", segment.is_large ? "large" : "small"},
          {"segment_pool_id", segment.pool},
          {"is_expandable", segment.is_expandable},
          {"blocks", std::move(blocks)}};
}

Json json_of(const TraceEntry& entry, Stacks& stacks) {
  Json object = {{"action", name(entry.action)},
                 {entry.action == Action::kOom ? "device_free" : "addr", entry.address},
                 {"size", entry.size},
                 {"stream", entry.stream},
                 {"time_us", entry.time_us}};
  add_context(object, entry.context, stacks);
  if (entry.action == Action::kUserDefined) object["user_metadata"] = entry.label;
  return object;
}

/// Writes a snapshot in the form of torch.cuda.memory._snapshot().
class SnapshotPickle {
 public:
  std::string write(const MemorySnapshot& snapshot) {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const SegmentInfo& segment : snapshot.segments) write_segment(segment);
    pickle_.end_list();
    pickle_.text("device_traces");  // one list for each device up to this one
    pickle_.begin_list();
    for (int device = 0; device <= snapshot.device.index; ++device) {
      pickle_.begin_list();
      if (device == snapshot.device.index) {
        for (const TraceEntry& entry : snapshot.trace) write_entry(entry);
      }
      pickle_.end_list();
    }
    pickle_.end_list();
    pickle_.text("allocator_settings");
    write_settings(snapshot.options);
    pickle_.text("external_annotations");
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  void write_number(std::string_view key, uint64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void write_number(std::string_view key, int64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void write_text(std::string_view key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void write_flag(std::string_view key, bool value) {
    pickle_.text(key);
    pickle_.boolean(value);
  }

  void write_frame(std::string_view function, std::string_view file) {
    pickle_.begin_dict();
    write_text("name", function);
    write_text("filename", file);
    write_number("line", uint64_t{0});
    pickle_.end_dict();
  }

  /// Writes operator, module and phase as the innermost frames, because viewers show only frames.
  void write_frames(const AllocationContext& context) {
    pickle_.text("frames");
    const auto [place, is_new] =
        frames_.try_emplace({text(context.op), context.module, context.phase, context.stack}, 0);
    if (!is_new) {
      pickle_.recall(place->second);
      return;
    }
    pickle_.begin_list();
    if (context.op != nullptr) write_frame(context.op, "operator");
    if (!context.module.empty()) write_frame(context.module, "module");
    if (context.op != nullptr) write_frame(name(context.phase), "phase");
    for (const CallStack::Frame& frame : context.stack.frames(known_frames_)) {
      const std::string_view path = frame.file;
      write_frame(frame.function,
                  fmt::format("{}+{:#x}", path.substr(path.find_last_of('/') + 1), frame.offset));
    }
    pickle_.end_list();
    place->second = pickle_.remember();
  }

  void write_segment(const SegmentInfo& segment) {
    pickle_.begin_dict();
    write_number("device", int64_t{segment.device.index});
    write_number("address", uint64_t{segment.address});
    write_number("total_size", uint64_t{segment.total_size});
    write_number("allocated_size", uint64_t{segment.allocated_size});
    write_number("active_size", uint64_t{segment.active_size});
    write_number("requested_size", uint64_t{segment.requested_size});
    write_number("stream", int64_t{segment.stream});
    write_text("segment_type", segment.is_large ? "large" : "small");
    pickle_.text("segment_pool_id");
    pickle_.begin_pair();
    pickle_.integer(uint64_t{0});
    pickle_.integer(uint64_t{segment.pool});
    pickle_.end_pair();
    write_flag("is_expandable", segment.is_expandable);
    static const AllocationContext kNobody;
    write_frames(kNobody);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const BlockInfo& block : segment.blocks) {
      pickle_.begin_dict();
      write_number("address", uint64_t{block.address});
      write_number("size", uint64_t{block.size});
      write_number("requested_size", uint64_t{block.requested_size});
      write_text("state", name(block.state));
      write_frames(block.context);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_entry(const TraceEntry& entry) {
    pickle_.begin_dict();
    write_text("action", name(entry.action));
    write_number(entry.action == Action::kOom ? "device_free" : "addr", uint64_t{entry.address});
    write_number("size", uint64_t{entry.size});
    write_number("stream", int64_t{entry.stream});
    write_number("time_us", entry.time_us);
    write_frames(entry.context);
    if (entry.action == Action::kUserDefined) write_text("user_metadata", entry.label);
    pickle_.end_dict();
  }

  void write_settings(const AllocatorOptions& options) {
    pickle_.begin_dict();
    write_text("PYTORCH_CUDA_ALLOC_CONF", to_string(options));
    write_number("max_split_size", max_split_size(options));
    pickle_.text("garbage_collection_threshold");
    pickle_.real(options.garbage_collection_threshold);
    write_flag("expandable_segments", options.expandable_segments);
    pickle_.text("roundup_power2_divisions");
    pickle_.begin_dict();
    const std::vector<int>& divisions = options.roundup_power2_divisions;
    for (size_t i = 0; i < divisions.size(); ++i) {
      write_number(i + 1 < divisions.size() ? fmt::format("{}", size_t{1} << i) : ">",
                   int64_t{divisions[i]});
    }
    pickle_.end_dict();
    pickle_.end_dict();
  }

  PickleWriter pickle_;
  CallStack::KnownFrames known_frames_;
  std::map<std::tuple<std::string_view, std::string_view, Phase, CallStack>, uint32_t> frames_;
};

}  // namespace

const char* name(Action action) {
  switch (action) {
    case Action::kAlloc:
      return "alloc";
    case Action::kFreeRequested:
      return "free_requested";
    case Action::kFreeCompleted:
      return "free_completed";
    case Action::kSegmentAlloc:
      return "segment_alloc";
    case Action::kSegmentFree:
      return "segment_free";
    case Action::kSegmentMap:
      return "segment_map";
    case Action::kSegmentUnmap:
      return "segment_unmap";
    case Action::kSnapshot:
      return "snapshot";
    case Action::kOom:
      return "oom";
    case Action::kUserDefined:
      return "user_defined";
  }
  return "";
}

const char* name(BlockInfo::State state) {
  switch (state) {
    case BlockInfo::State::kActiveAllocated:
      return "active_allocated";
    case BlockInfo::State::kActivePendingFree:
      return "active_pending_free";
    case BlockInfo::State::kInactive:
      return "inactive";
  }
  return "";
}

std::string to_json(const MemorySnapshot& snapshot) {
  Stacks stacks;
  std::vector<std::string> segments;
  for (const SegmentInfo& segment : snapshot.segments) {
    segments.push_back(line(json_of(segment, stacks)));
  }
  std::vector<std::string> trace;
  for (const TraceEntry& entry : snapshot.trace) trace.push_back(line(json_of(entry, stacks)));
  // One line for each entry, so that line-based tools can process the file.
  const auto list = [](const std::vector<std::string>& lines) {
    return lines.empty() ? "[]" : fmt::format("[\n{}\n]", fmt::join(lines, ",\n"));
  };
  return fmt::format(
      "{{\"device\": {},\n\"allocator_settings\": {},\n\"segments\": {},\n\"trace\": {},\n"
      "\"stacks\": {}}}\n",
      line(to_string(snapshot.device)), line(to_string(snapshot.options)), list(segments),
      list(trace), list(stacks.lines()));
}

std::string to_pickle(const MemorySnapshot& snapshot) { return SnapshotPickle().write(snapshot); }

}  // namespace lockstep
