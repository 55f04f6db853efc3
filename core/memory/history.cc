#include "core/memory/history.h"

#include <chrono>
#include <functional>
#include <unordered_set>
#include <utility>

#include "core/base/current_scope.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

struct HashOfText {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

const std::string* intern(std::string_view module) {
  static SpinLock lock;
  // Hashed, because a model has thousands of modules whose names share long beginnings, and each of
  // them allocates in each step. Leaked: blocks may outlive static objects.
  static auto* const modules LS_PT_GUARDED_BY(lock) =
      new std::unordered_set<std::string, HashOfText, std::equal_to<>>;
  const MutexLock guard(lock);
  const auto found = modules->find(module);
  return found != modules->end() ? &*found : &*modules->emplace(module).first;
}

}  // namespace

const std::string* current_module_interned() {
  const std::string_view module = current_module();
  if (module.empty()) return nullptr;
  static thread_local constinit const std::string* last = nullptr;
  if (last == nullptr || *last != module) last = intern(module);
  return last;
}

AllocationContext context_of(const Chunk& chunk) {
  AllocationContext context;
  if (chunk.op != nullptr) context.op = chunk.op->name().c_str();
  if (chunk.module != nullptr) context.module = *chunk.module;
  if (chunk.stack != nullptr) context.stack = *chunk.stack;
  context.phase = chunk.phase;
  return context;
}

BlockInfo info_of(const Chunk& chunk, BlockInfo::State state) {
  BlockInfo info{chunk.address, chunk.size, 0, state, {}};
  if (state == BlockInfo::State::kInactive) return info;
  info.requested_size = chunk.requested;
  info.context = context_of(chunk);
  return info;
}

void History::start(size_t entries, bool stacks) {
  const MutexLock guard(lock_);
  stacks_ = entries != 0 && stacks;
  capacity_ = entries;
  entries_.clear();
  gone_since_peak_.clear();
  bytes_ = peak_bytes_ = 0;
  peak_sequence_ = started_ = sequence_;
}

void History::push(TraceEntry entry) {
  if (capacity_ == 0) return;
  if (entries_.size() == capacity_) entries_.pop_front();
  entry.time_us = now_us();
  entries_.push_back(std::move(entry));
}

void History::add(TraceEntry entry) {
  const MutexLock guard(lock_);
  push(std::move(entry));
}

void History::add(TraceEntry::Action action, uintptr_t address, size_t size, const Stream& stream) {
  TraceEntry entry;
  entry.action = action;
  entry.address = address;
  entry.size = size;
  entry.stream = stream.id;
  add(std::move(entry));
}

namespace {

TraceEntry entry_of(TraceEntry::Action action, const Chunk& chunk, const Stream& stream) {
  TraceEntry entry;
  entry.action = action;
  entry.address = chunk.address;
  entry.size = chunk.size;
  entry.stream = stream.id;
  entry.context = context_of(chunk);
  return entry;
}

}  // namespace

void History::lend(Chunk& chunk, const Stream& stream) {
  TraceEntry entry = entry_of(TraceEntry::Action::kAlloc, chunk, stream);
  const MutexLock guard(lock_);
  chunk.sequence = ++sequence_;
  bytes_ += static_cast<int64_t>(chunk.size);
  if (bytes_ > peak_bytes_) {
    peak_bytes_ = bytes_;
    peak_sequence_ = sequence_;
    gone_since_peak_.clear();
  }
  push(std::move(entry));
}

void History::give_back(const Chunk& chunk, const Stream& stream) {
  TraceEntry entry = entry_of(TraceEntry::Action::kFreeRequested, chunk, stream);
  const MutexLock guard(lock_);
  if (chunk.sequence > started_) {
    bytes_ -= static_cast<int64_t>(chunk.size);
    if (chunk.sequence <= peak_sequence_) {
      gone_since_peak_.push_back(info_of(chunk, BlockInfo::State::kActiveAllocated));
    }
  }
  push(std::move(entry));
}

void History::free_completed(const Chunk& chunk, const Stream& stream) {
  add(entry_of(TraceEntry::Action::kFreeCompleted, chunk, stream));
}

std::vector<TraceEntry> History::entries() const {
  const MutexLock guard(lock_);
  return {entries_.begin(), entries_.end()};
}

std::vector<BlockInfo> History::gone_since_peak() const {
  const MutexLock guard(lock_);
  return gone_since_peak_;
}

bool History::was_at_peak(const Chunk& chunk) const {
  const MutexLock guard(lock_);
  return chunk.sequence > started_ && chunk.sequence <= peak_sequence_;
}

void History::reset_peak() {
  const MutexLock guard(lock_);
  peak_bytes_ = bytes_;
  peak_sequence_ = sequence_;
  gone_since_peak_.clear();
}

}  // namespace lockstep
