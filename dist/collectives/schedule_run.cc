#include "dist/collectives/schedule_run.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

constexpr std::align_val_t kScratchAlignment{64};
/// Bytes that one call of `advance` reads and writes before the transport gets its turn again
/// (about 20 us).
constexpr uint64_t kBytesAtOnce = 256 * 1024;

bool is_message(const Step& step) {
  return step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive;
}

}  // namespace

void ScheduleRun::Freed::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, kScratchAlignment);
}

ScheduleRun::ScheduleRun(Transport& transport)
    : transport_(transport), window_(static_cast<uint32_t>(std::max(transport.window(), 1))) {}

ScheduleRun::~ScheduleRun() { cancel_messages(); }

size_t ScheduleRun::flow_of(const Step& step) const {
  const size_t direction = step.kind == Step::Kind::kSend ? kSend : kReceive;
  return (step.lane * size_t{2} + direction) * ranks_.size() + static_cast<size_t>(step.peer);
}

Message& ScheduleRun::message(size_t flow, uint32_t place) {
  return messages_[flow * window_ + place % window_];
}

std::byte* ScheduleRun::address(const Slice& slice) const {
  switch (slice.memory) {
    case Slice::Memory::kInput:
      // Only sends and sources use the input, so it is only read.
      return const_cast<std::byte*>(input_) + slice.offset;
    case Slice::Memory::kOutput:
      return output_ + slice.offset;
    case Slice::Memory::kScratch:
      return scratch_.get() + slice.offset;
  }
  return nullptr;
}

void ScheduleRun::prepare(const Target& target) {
  const std::vector<Step>& steps = schedule_->steps;
  input_ = static_cast<const std::byte*>(target.input);
  output_ = static_cast<std::byte*>(target.output);
  tag_ = target.tag;
  ranks_.assign(target.ranks.begin(), target.ranks.end());
  unfinished_ = steps.size();
  busy_.clear();
  at_hand_.clear();
  first_at_hand_ = 0;

  if (scratch_bytes_ < schedule_->scratch_bytes) {
    scratch_bytes_ = 0;
    scratch_.reset();
    scratch_.reset(new (kScratchAlignment) std::byte[schedule_->scratch_bytes]);
    scratch_bytes_ = schedule_->scratch_bytes;
  }

  flows_.clear();
  waits_for_.resize(steps.size());
  follower_.resize(steps.size());
  for (uint32_t id = 0; id < steps.size(); ++id) {
    const Step& step = steps[id];
    waits_for_[id] = step.waits_for;
    follower_[id] = kNone;
    if (!is_message(step)) continue;
    const size_t index = flow_of(step);
    if (index >= flows_.size()) flows_.resize(index + 1);
    Flow& flow = flows_[index];
    if (flow.last == kNone) {
      flow.unposted = id;
      flow.peer = step.peer;
      flow.lane = step.lane;
      flow.direction = step.kind == Step::Kind::kSend ? kSend : kReceive;
    } else {
      follower_[flow.last] = id;
    }
    flow.last = id;
  }
  if (messages_.size() < flows_.size() * window_) messages_.resize(flows_.size() * window_);
}

void ScheduleRun::start(const Schedule& schedule, const Target& target) {
  LS_ASSERT(state_ != State::kRunning);
  schedule_ = &schedule;
  prepare(target);
  state_ = State::kRunning;
  for (uint32_t id = 0; id < schedule.steps.size(); ++id) {
    if (schedule.steps[id].waits_for != 0) continue;
    if (is_message(schedule.steps[id])) {
      post(flow_of(schedule.steps[id]),
           1);  // one for each step, so that all peers are served early
    } else {
      at_hand_.push_back(id);
    }
  }
  if (unfinished_ == 0) state_ = State::kDone;
}

void ScheduleRun::set_ready(uint32_t id) {
  const Step& step = schedule_->steps[id];
  if (is_message(step)) {
    post(flow_of(step), window_);
  } else {
    at_hand_.push_back(id);
  }
}

void ScheduleRun::post(size_t index, uint32_t most) {
  Flow& flow = flows_[index];
  for (; most > 0 && flow.unposted != kNone && waits_for_[flow.unposted] == 0 &&
         flow.in_flight < window_;
       --most) {
    const Step& step = schedule_->steps[flow.unposted];
    Message& posted = message(index, flow.first_message + flow.in_flight);
    posted.bytes = 0;
    posted.error.clear();
    if (flow.in_flight++ == 0) flow.oldest = flow.unposted;
    flow.unposted = follower_[flow.unposted];
    if (!std::exchange(flow.is_listed, true)) busy_.push_back(static_cast<uint32_t>(index));
    const int peer = ranks_[static_cast<size_t>(step.peer)];
    if (flow.direction == kSend) {
      transport_.send(peer, tag_ + step.lane, address(step.slice), step.slice.bytes, posted);
    } else {
      transport_.receive(peer, tag_ + step.lane, address(step.slice), step.slice.bytes, posted);
    }
  }
}

void ScheduleRun::complete(uint32_t id) {
  --unfinished_;
  const Step& step = schedule_->steps[id];
  for (uint32_t i = 0; i < step.next_count; ++i) {
    const uint32_t next = schedule_->next[step.first_next + i];
    if (--waits_for_[next] == 0) set_ready(next);
  }
}

bool ScheduleRun::collect(size_t index) {
  bool any = false;
  while (flows_[index].in_flight > 0 && state_ == State::kRunning) {
    Flow& flow = flows_[index];
    Message& oldest = message(index, flow.first_message);
    if (oldest.state == Message::State::kPending) break;
    any = true;
    const uint32_t id = flow.oldest;
    const Step& step = schedule_->steps[id];
    if (oldest.state != Message::State::kDone) {
      fail(step.peer, flow.direction == kReceive && oldest.bytes > step.slice.bytes,
           fmt::format("{} rank {} failed: {}",
                       flow.direction == kSend ? "sending to" : "receiving from", step.peer,
                       oldest.error));
    } else if (flow.direction == kReceive && oldest.bytes != step.slice.bytes) {
      fail(step.peer, true,
           fmt::format("rank {} sent {} bytes where {} were expected", step.peer, oldest.bytes,
                       step.slice.bytes));
    } else {
      flow.first_message = (flow.first_message + 1) % window_;
      flow.oldest = --flow.in_flight == 0 ? kNone : follower_[id];
      complete(id);
      post(index, window_);
    }
  }
  return any;
}

void ScheduleRun::compute(const Step& step) {
  std::byte* result = address(step.slice);
  if (step.kind == Step::Kind::kCopy) {
    const std::byte* from = address(schedule_->sources[step.first_source]);
    if (from != result) std::memcpy(result, from, step.slice.bytes);
    return;
  }
  sources_.clear();
  for (uint32_t i = 0; i < step.source_count; ++i) {
    sources_.push_back(address(schedule_->sources[step.first_source + i]));
  }
  const OrderedReduction& how = schedule_->reductions[step.reduction];
  const auto count = static_cast<int64_t>(step.slice.bytes / size_of(how.to));
  reduce_in_order(how, sources_, result, count);
}

bool ScheduleRun::compute_some() {
  if (at_hand_.empty()) return false;
  uint64_t moved = 0;
  while (first_at_hand_ < at_hand_.size() && moved < kBytesAtOnce) {
    const uint32_t id = at_hand_[first_at_hand_++];
    const Step& step = schedule_->steps[id];
    compute(step);
    moved += step.slice.bytes * (1 + step.source_count);
    complete(id);
  }
  if (first_at_hand_ == at_hand_.size()) {
    at_hand_.clear();
    first_at_hand_ = 0;
  }
  return true;
}

bool ScheduleRun::advance() {
  if (state_ != State::kRunning) return false;
  bool any = false;
  for (size_t i = 0; i < busy_.size();) {
    const uint32_t index = busy_[i];
    any |= collect(index);
    if (state_ != State::kRunning) return true;
    if (flows_[index].in_flight > 0) {
      ++i;
    } else {
      flows_[index].is_listed = false;
      busy_[i] = busy_.back();
      busy_.pop_back();
    }
  }
  any |= compute_some();
  if (unfinished_ == 0) state_ = State::kDone;
  return any;
}

void ScheduleRun::fail(int peer, bool is_mismatch, std::string text) {
  cancel_messages();
  fault_ = {peer, is_mismatch, std::move(text)};
  state_ = State::kFailed;
}

void ScheduleRun::cancel_messages() noexcept {
  for (const uint32_t index : busy_) {
    Flow& flow = flows_[index];
    for (uint32_t i = 0; i < flow.in_flight; ++i) {
      Message& posted = message(index, flow.first_message + i);
      if (posted.state == Message::State::kPending) transport_.cancel(posted);
    }
    flow.in_flight = 0;
  }
  busy_.clear();
}

void ScheduleRun::cancel() noexcept {
  cancel_messages();
  state_ = State::kIdle;
}

uint64_t ScheduleRun::posted_ranks(Direction direction) const noexcept {
  uint64_t ranks = 0;
  for (const uint32_t index : busy_) {
    const Flow& flow = flows_[index];
    if (flow.in_flight > 0 && flow.direction == direction && flow.peer < 64) {
      ranks |= uint64_t{1} << flow.peer;
    }
  }
  return ranks;
}

}  // namespace lockstep::dist
