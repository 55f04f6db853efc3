#include "dist/flight/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/mutex.h"
#include "core/base/spin_lock.h"
#include "core/base/utf8.h"
#include "dist/collectives/operation_label.h"
#include "dist/flight/flight_log.h"

namespace lockstep::dist {
namespace {

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

template <size_t N>
void set_text(char (&into)[N], std::string_view text) {
  text = text.substr(0, text.find('\0'));
  size_t bytes = std::min(text.size(), N - 1);
  while (bytes > 0 && bytes < text.size() && continues_utf8(text[bytes])) --bytes;
  std::memset(into, 0, N);
  std::memcpy(into, text.data(), bytes);
}

}  // namespace

void set_group_name(FlightRecord& record, std::string_view name) {
  set_text(record.group_name, name);
}

void set_label(FlightRecord& record, std::string_view label) { set_text(record.label, label); }

const char* name(FlightRecord::State state) {
  constexpr const char* kNames[] = {"queued", "started", "done", "failed"};
  return kNames[static_cast<int>(state)];
}

struct FlightRecorder::State {
  State(int rank, int world_size, size_t capacity, std::string start)
      : rank(rank),
        world_size(world_size),
        start(std::move(start)),
        capacity(capacity),
        ring(capacity) {}

  const int rank;
  const int world_size;
  const std::string start;
  const size_t capacity;  ///< a power of two

  mutable SpinLock lock;  ///< held for one record at a time
  std::vector<FlightRecord> ring LS_GUARDED_BY(lock);
  /// Number of the next record; number n is at ring[n % capacity].
  uint64_t next LS_GUARDED_BY(lock) = 0;
  std::unordered_map<uint64_t, uint64_t> newest LS_GUARDED_BY(lock);  ///< by group

  Mutex groups_mutex;
  std::vector<FlightGroup> groups LS_GUARDED_BY(groups_mutex);  ///< as added, without `newest`

  Mutex writing;  ///< held while the file is written

  FlightRecord& at(uint64_t number) LS_REQUIRES(lock) { return ring[number & (capacity - 1)]; }
  bool remembers(uint64_t number) const LS_REQUIRES(lock) {
    return number < next && next - number <= capacity;
  }

  template <class Change>
  void change(uint64_t number, Change change) {
    const MutexLock guard(lock);
    if (remembers(number)) change(at(number));
  }
  uint64_t recorded() const {
    const MutexLock guard(lock);
    return next;
  }
};

FlightRecorder::FlightRecorder(int rank, int world_size, size_t capacity, std::string start) {
  LS_ASSERT(std::has_single_bit(capacity));
  state_ = std::make_unique<State>(rank, world_size, capacity, std::move(start));
}

FlightRecorder::~FlightRecorder() = default;

void FlightRecorder::add_group(uint64_t group, std::string name, std::vector<int> ranks) {
  const MutexLock guard(state_->groups_mutex);
  state_->groups.push_back({group, std::move(name), std::move(ranks), {}});
}

uint64_t FlightRecorder::queued(const Signature& signature, const std::string& group_name,
                                uint32_t tensors, uint32_t user_tag) {
  FlightRecord record;
  record.signature = signature;
  set_group_name(record, group_name);
  OperationLabel::write(record.label, sizeof record.label);
  record.tensors = tensors;
  record.user_tag = user_tag;
  record.queued_ns = now_ns();
  const MutexLock guard(state_->lock);
  if (is_collective(signature.kind)) {
    uint64_t& newest =
        state_->newest.try_emplace(signature.group, signature.sequence).first->second;
    newest = std::max(newest, signature.sequence);
  }
  state_->at(state_->next) = record;
  return state_->next++;
}

void FlightRecorder::started(uint64_t record) {
  const int64_t now = now_ns();
  state_->change(record, [&](FlightRecord& at) {
    at.state = FlightRecord::State::kStarted;
    at.started_ns = now;
  });
}

void FlightRecorder::awaits(uint64_t record, uint64_t ranks) {
  state_->change(record, [&](FlightRecord& at) { at.awaited_ranks = ranks; });
}

void FlightRecorder::ended(uint64_t record, bool failed) {
  const int64_t now = now_ns();
  state_->change(record, [&](FlightRecord& at) {
    at.state = failed ? FlightRecord::State::kFailed : FlightRecord::State::kDone;
    at.ended_ns = now;
    if (!failed) at.awaited_ranks = 0;  // a failed operation keeps the missing ranks
  });
}

std::optional<FlightRecord> FlightRecorder::find(uint64_t group, uint64_t sequence) const {
  for (uint64_t number = state_->recorded(); number-- > 0;) {
    const MutexLock guard(state_->lock);
    if (!state_->remembers(number)) break;
    const FlightRecord& record = state_->at(number);
    if (record.signature.group == group && record.signature.sequence == sequence &&
        is_collective(record.signature.kind)) {
      return record;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> FlightRecorder::newest(uint64_t group) const {
  const MutexLock guard(state_->lock);
  const auto found = state_->newest.find(group);
  return found == state_->newest.end() ? std::nullopt : std::optional(found->second);
}

std::vector<FlightRecord> FlightRecorder::unfinished(uint64_t group, size_t most) const {
  const uint64_t end = state_->recorded();
  std::vector<FlightRecord> found;
  for (uint64_t number = end - std::min<uint64_t>(end, state_->capacity);
       number < end && found.size() < most; ++number) {
    const MutexLock guard(state_->lock);
    if (!state_->remembers(number)) continue;
    const FlightRecord& record = state_->at(number);
    const bool has_ended =
        record.state == FlightRecord::State::kDone || record.state == FlightRecord::State::kFailed;
    if (has_ended || record.signature.group != group || !is_collective(record.signature.kind)) {
      continue;
    }
    found.push_back(record);
  }
  return found;
}

std::vector<FlightRecord> FlightRecorder::records() const {
  const uint64_t end = state_->recorded();
  std::vector<FlightRecord> records;
  records.reserve(state_->capacity);
  for (uint64_t number = end - std::min<uint64_t>(end, state_->capacity); number < end; ++number) {
    const MutexLock guard(state_->lock);
    if (state_->remembers(number)) records.push_back(state_->at(number));
  }
  return records;
}

std::vector<FlightGroup> FlightRecorder::groups() const {
  std::vector<FlightGroup> groups;
  {
    const MutexLock guard(state_->groups_mutex);
    groups = state_->groups;
  }
  for (FlightGroup& group : groups) group.newest = newest(group.id);
  for (const FlightRecord& record : records()) {
    const uint64_t id = record.signature.group;
    if (std::ranges::find(groups, id, &FlightGroup::id) != groups.end()) continue;
    groups.push_back({id, record.group_name, {}, newest(id)});
  }
  return groups;
}

uint64_t FlightRecorder::recorded() const { return state_->recorded(); }

void FlightRecorder::write(const std::string& folder, const std::string& reason) const {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  LS_CHECK(!failed, DataError, "[flight log] {}: the folder cannot be made: {}.", folder,
           failed.message());
  const MutexLock guard(state_->writing);  // so that the newest contents are written last
  FlightLog log{.rank = state_->rank,
                .world_size = state_->world_size,
                .start = state_->start,
                .host = host_name(),
                .process = ::getpid(),
                .reason = reason,
                .written_ns = now_ns(),
                .recorded = state_->recorded(),
                .groups = {},
                .records = records()};
  log.groups = groups();
  write_text(fmt::format("{}/flight.rank{}.json", folder, state_->rank), format_flight_log(log));
}

}  // namespace lockstep::dist
