#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/cuda/pattern.h"
#include "core/device/device_runtime.h"
#include "core/memory/caching_allocator.h"
#include "core/tensor/event.h"

namespace lockstep::cuda {

/// A random program on a cuda device's memory: blocks are allocated on several streams, filled,
/// read by other streams after an event, and freed at once. Every block must keep its contents
/// until the work of its owner and its readers is done.
class BlockStress {
 public:
  static constexpr int kStreams = 6;

  BlockStress(CachingAllocator& allocator, uint64_t seed, size_t most_bytes)
      : allocator_(allocator), random_(seed), most_bytes_(most_bytes) {
    counter_ = allocator_.allocate(sizeof wrong_, stream(0));
    copy_async(stream(0), counter_.data, &wrong_, sizeof wrong_, Transfer::kFromCpu);
    stream(0).synchronize();
  }
  ~BlockStress() {
    while (!live_.empty()) free(live_.size() - 1);
    synchronize(allocator_.device());  // wrong words are counted on every stream
    allocator_.free(counter_);
  }
  BlockStress(const BlockStress&) = delete;
  BlockStress& operator=(const BlockStress&) = delete;

  /// Runs one operation. Throws what the allocator throws.
  void step() {
    const uint64_t choice = random_() % 8;
    if (live_.empty() || (choice < 3 && live_.size() < kMostLive)) {
      allocate();
    } else if (choice < 6) {
      read_elsewhere(random_() % live_.size());
    } else {
      free(random_() % live_.size());
    }
  }

  /// Waits for all work. Returns the number of wrong words.
  uint64_t wrong() {
    synchronize(allocator_.device());
    copy_async(stream(0), &wrong_, counter_.data, sizeof wrong_, Transfer::kToCpu);
    stream(0).synchronize();
    return wrong_;
  }

 private:
  static constexpr size_t kMostLive = 40;

  struct Live {
    Block block;
    Stream stream;
    size_t bytes;
    uint64_t seed;
  };

  Stream stream(uint64_t index) const { return {allocator_.device(), static_cast<int32_t>(index)}; }
  auto* words() const { return static_cast<uint64_t*>(counter_.data); }

  void allocate() {
    // Log-uniform sizes: as many small blocks as large ones.
    const uint64_t scale = random_() % most_bytes_ >> random_() % 20;
    const size_t bytes = std::max<size_t>(scale / 8 * 8, 8);
    const Stream on = stream(random_() % kStreams);
    const Block block = allocator_.allocate(bytes, on);
    const uint64_t seed = random_();
    try {
      fill_pattern(on, block.data, bytes, seed);
    } catch (...) {
      allocator_.free(block);
      throw;
    }
    live_.push_back({block, on, bytes, seed});
  }

  void read_elsewhere(size_t index) {
    const Live& live = live_[index];
    const Stream reader = stream(random_() % kStreams);
    if (reader == live.stream) return;
    Event filled;
    filled.record(live.stream);
    reader.wait_event(filled);
    if (random_() % 2 == 0) {
      allocator_.record_stream(live.block, reader);
      count_wrong(reader, live.block.data, live.bytes, live.seed, words());
      return;
    }
    count_wrong(reader, live.block.data, live.bytes, live.seed, words());
    try {
      allocator_.record_use(live.block, reader);
    } catch (...) {  // the kernel is queued nevertheless
      allocator_.record_stream(live.block, reader);
      throw;
    }
  }

  void free(size_t index) {
    const Live live = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    count_wrong(live.stream, live.block.data, live.bytes, live.seed, words());
    allocator_.free(live.block);
  }

  CachingAllocator& allocator_;
  std::mt19937_64 random_;
  size_t most_bytes_;
  Block counter_;
  uint64_t wrong_ = 0;
  std::vector<Live> live_;
};

}  // namespace lockstep::cuda
