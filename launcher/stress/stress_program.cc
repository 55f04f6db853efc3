#include "launcher/stress/stress_program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

bool contains(const std::vector<Stream>& streams, const Stream& stream) {
  return std::ranges::find(streams, stream) != streams.end();
}

}  // namespace

void StressMail::send(StressBlock block) {
  const MutexLock guard(mutex_);
  blocks_.push_back(std::move(block));
}

bool StressMail::receive(StressBlock& block) {
  const MutexLock guard(mutex_);
  if (blocks_.empty()) return false;
  block = std::move(blocks_.front());
  blocks_.pop_front();
  return true;
}

StressProgram::StressProgram(Allocator& allocator, std::span<const Stream> streams,
                             StressWork& work, StressMail& mail, const Options& options)
    : allocator_(allocator),
      streams_(streams),
      work_(work),
      mail_(mail),
      options_(options),
      random_(options.seed * 1000 + static_cast<uint64_t>(options.thread)) {}

StressProgram::~StressProgram() {
  try {
    finish();
  } catch (const Error&) {
    // The exception that ended the program is reported elsewhere. Blocks that could not be verified
    // are freed without.
    for (const StressBlock& block : blocks_) allocator_.free(block.block);
  }
}

void StressProgram::run(int64_t operations) {
  for (int64_t i = 0; i < operations; ++i) {
    step();
    ++counts_.operations;
  }
}

void StressProgram::finish() {
  while (!blocks_.empty()) free(blocks_.size() - 1);
  // Blocks that other threads send after this are received by the threads that finish later.
  for (StressBlock block; mail_.receive(block);) free(block);
}

void StressProgram::step() {
  const bool moves = options_.kind == StressKind::kAllocator;
  const size_t enough = moves ? 4 : 24;
  if (blocks_.size() < enough) return allocate();
  if (live_bytes_ > options_.live_bytes) return free(draw(blocks_.size()));
  const size_t choice = draw(100);
  const size_t comes = moves ? 35 : 2;
  if (choice < comes) return allocate();
  if (choice < 2 * comes) return free(draw(blocks_.size()));
  // Rescales the remaining range to 0..99, so that the other operations keep their proportions.
  const size_t other = (choice - 2 * comes) * 100 / (100 - 2 * comes);
  if (other < 25) return rewrite(draw_block());
  if (other < 45) return add();
  if (other < 60) return copy();
  if (other < 80) {
    StressBlock& block = draw_block();
    return verify(block, draw_stream());
  }
  if (other < 84) return one_in(8) ? use_shortly(draw_block()) : rewrite(draw_block());
  if (other < 88) {
    const size_t at = draw(blocks_.size());
    live_bytes_ -= blocks_[at].bytes;
    mail_.send(std::move(blocks_[at]));
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  if (other < 94) return receive();
  look_around();
}

size_t StressProgram::draw_size() {
  constexpr size_t kMiB = size_t{1} << 20;
  if (options_.kind == StressKind::kStreams) return 4096 * (1 + draw(16));
  if (one_in(50)) {  // sizes at which the allocator's policy changes
    constexpr size_t kEdges[] = {1, 512, kMiB, 2 * kMiB, 10 * kMiB, 20 * kMiB};
    const size_t edge = kEdges[draw(std::size(kEdges))] + draw(3) - 1;
    return std::clamp(edge, size_t{1}, options_.largest_block);
  }
  // Mostly small sizes, since filling large blocks takes long.
  const double largest = std::log2(static_cast<double>(options_.largest_block));
  const double most = one_in(8) ? largest : std::min(largest, 17.0);
  const double drawn = std::uniform_real_distribution<double>(0, most)(random_);
  const auto bytes = static_cast<size_t>(std::exp2(drawn));
  return one_in(2) ? bytes : (bytes + 7) / 8 * 8;  // add() needs whole words
}

Stream StressProgram::draw_stream(const Stream* home) {
  if (home != nullptr && !one_in(4)) return *home;
  return streams_[draw(streams_.size())];
}

int StressProgram::draw_delay() { return one_in(200) ? 50 : 0; }

bool StressProgram::fails(StressFault fault) {
  if (options_.fault != fault || !one_in(4)) return false;
  ++counts_.faults;
  return true;
}

void StressProgram::hold_up(const Stream& stream) {
  constexpr std::chrono::milliseconds kLate(2);
  stream.add_callback([kLate] { std::this_thread::sleep_for(kLate); });
}

std::string StressProgram::name(const StressBlock& block) const {
  return fmt::format("seed {}, thread {}, block {} of {} bytes on {}", options_.seed,
                     options_.thread, block.id, block.bytes, to_string(block.home));
}

void StressProgram::allocate() {
  StressBlock made;
  made.id = next_id_++;
  made.bytes = draw_size();
  made.home = draw_stream();
  made.writer = made.home;
  made.promise = static_cast<StressBlock::Promise>(draw(3));
  try {
    made.block = allocator_.allocate(made.bytes, made.home);
  } catch (const OutOfMemoryError&) {
    ++counts_.out_of_memory;
    const size_t kept = blocks_.size() / 2;
    while (blocks_.size() > kept) free(blocks_.size() - 1);
    return;
  }
  live_bytes_ += made.bytes;
  blocks_.push_back(std::move(made));
  rewrite(blocks_.back());
}

void StressProgram::free(size_t at) {
  StressBlock block = std::move(blocks_[at]);
  blocks_[at] = std::move(blocks_.back());
  blocks_.pop_back();
  live_bytes_ -= block.bytes;
  free(block);
}

void StressProgram::free(StressBlock& block) {
  // Frees the block even if an exception is thrown.
  const struct FreeOnExit {
    Allocator& allocator;
    Block block;
    ~FreeOnExit() { allocator.free(block); }
  } gives_back{allocator_, block.block};
  verify(block, draw_stream(&block.home));
  ++counts_.blocks;
  if (block.promise != StressBlock::Promise::kJoin) return;
  for (const Stream& stream : block.foreign) block.home.wait_stream(stream);
}

void StressProgram::order(StressBlock& block, const Stream& stream, bool written) {
  if (block.writer != stream && !fails(StressFault::kLostEvent)) {
    if (block.written != nullptr) {
      stream.wait_event(*block.written);
    } else {
      stream.wait_stream(block.writer);
    }
  }
  if (!written) return;
  for (const Stream& reader : block.readers) {
    if (reader != stream) stream.wait_stream(reader);
  }
}

void StressProgram::used(StressBlock& block, const Stream& stream, bool written) {
  if (stream != block.home) {
    const bool is_new = !contains(block.foreign, stream);
    const bool forgets = fails(StressFault::kEarlyReuse);
    if (is_new && !forgets) block.foreign.push_back(stream);
    if (forgets) {
      // The allocator learns nothing of this use, nor does the block's stream wait for it.
    } else if (block.promise == StressBlock::Promise::kRecordUse) {
      allocator_.record_use(block.block, stream);
    } else if (block.promise == StressBlock::Promise::kRecordStream && is_new) {
      allocator_.record_stream(block.block, stream);
    }
  }
  if (!written) {
    if (!contains(block.readers, stream)) block.readers.push_back(stream);
    return;
  }
  block.writer = stream;
  block.readers.clear();
  block.written.reset();
  if (one_in(2)) {
    block.written = std::make_unique<Event>();
    block.written->record(stream);
  }
}

void StressProgram::rewrite(StressBlock& block) {
  const Stream stream = draw_stream(&block.home);
  order(block, stream, /*written=*/true);
  block.pattern = StressPattern::of(random_());
  // What does not wait for this write shall come before it.
  if (options_.fault == StressFault::kLostEvent && one_in(4)) hold_up(stream);
  if (one_in(10)) {
    work_.upload(stream, block.block.data, block.bytes, block.pattern);
  } else {
    work_.fill(stream, block.block.data, block.bytes, block.pattern, draw_delay());
  }
  if (fails(StressFault::kFlippedByte)) {
    work_.upload(stream, block.block.data, 1, {~block.pattern.start, 0});
  }
  used(block, stream, /*written=*/true);
}

void StressProgram::add() {
  StressBlock& to = draw_block();
  StressBlock& from = draw_block();
  const size_t bytes = to.bytes;
  if (&to == &from || !work_.has_kernels() || bytes % 8 != 0 || from.bytes < bytes) {
    return verify(to, draw_stream(&to.home));
  }
  const Stream stream = draw_stream(&to.home);
  order(to, stream, /*written=*/true);
  order(from, stream, /*written=*/false);
  work_.add(stream, to.block.data, from.block.data, bytes);
  to.pattern = to.pattern + from.pattern;
  used(to, stream, /*written=*/true);
  used(from, stream, /*written=*/false);
}

void StressProgram::copy() {
  StressBlock& to = draw_block();
  StressBlock& from = draw_block();
  if (&to == &from || from.bytes < to.bytes) return rewrite(to);
  const Stream stream = draw_stream(&to.home);
  order(to, stream, /*written=*/true);
  order(from, stream, /*written=*/false);
  if (const Stream other = draw_stream(); other != stream && fails(StressFault::kLateCopy)) {
    hold_up(other);
    work_.copy(other, to.block.data, from.block.data, to.bytes);
  } else {
    work_.copy(stream, to.block.data, from.block.data, to.bytes);
  }
  to.pattern = from.pattern;
  used(to, stream, /*written=*/true);
  used(from, stream, /*written=*/false);
}

void StressProgram::verify(StressBlock& block, const Stream& stream) {
  order(block, stream, /*written=*/false);
  // What reuses the block too early shall come before this.
  if (options_.fault == StressFault::kEarlyReuse && stream != block.home && one_in(4)) {
    hold_up(stream);
  }
  if (one_in(10)) {
    work_.download_and_verify(stream, block.block.data, block.bytes, block.pattern, name(block));
  } else {
    work_.verify(stream, block.block.data, block.bytes, block.pattern, name(block), draw_delay());
  }
  counts_.verified_bytes += static_cast<int64_t>(block.bytes);
  used(block, stream, /*written=*/false);
}

void StressProgram::use_shortly(StressBlock& block) {
  if (block.home.device.type == DeviceType::kCPU) return;  // it has a single stream
  const OwnedStream owned(block.home.device, one_in(2) ? 0 : -1);
  const Stream& stream = owned.get();
  order(block, stream, /*written=*/false);
  work_.verify(stream, block.block.data, block.bytes, block.pattern, name(block));
  counts_.verified_bytes += static_cast<int64_t>(block.bytes);
  // The stream is destroyed on return, so the block's stream must wait for it now.
  block.home.wait_stream(stream);
  if (!contains(block.readers, block.home)) block.readers.push_back(block.home);
}

void StressProgram::receive() {
  StressBlock block;
  if (!mail_.receive(block)) return;
  live_bytes_ += block.bytes;
  blocks_.push_back(std::move(block));
}

void StressProgram::look_around() {
  const Stream stream = draw_stream();
  switch (draw(6)) {
    case 0:
      if (one_in(4)) stream.synchronize();
      break;
    case 1:
      (void)stream.query();
      break;
    case 2:
      stream.wait_stream(draw_stream());
      break;
    case 3:
      stream.add_callback([] {});
      break;
    case 4: {
      Event event(/*timing=*/true);
      event.record(stream);
      (void)event.query();
      if (one_in(8)) event.synchronize();
      break;
    }
    default: {
      const MemoryStats stats = allocator_.stats();
      LS_CHECK(stats.allocated >= 0 && stats.reserved >= 0, InternalError,
               "[stress] statistics below zero: {} bytes on loan, {} reserved.", stats.allocated,
               stats.reserved);
    }
  }
}

}  // namespace lockstep
