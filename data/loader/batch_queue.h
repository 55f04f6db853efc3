#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/tensor/event.h"
#include "data/loader/data_loader.h"

namespace lockstep::data {

/// Where a batch's samples come from, in one epoch.
struct SampleReader {
  /// The samples of batch `number`; nothing at the end of the epoch.
  std::function<std::optional<std::vector<Sample>>(int64_t number)> read;
  /// Batches must be read one after the other, by one thread at a time.
  bool is_sequential = false;
};

/// Turns the samples of batch `number` into the batch.
using MakeBatch = std::function<Batch(int64_t number, std::vector<Sample> samples)>;

/// The batches of one epoch, prepared by threads in any order and taken in theirs.
class BatchQueue {
 public:
  /// Prepares batches from number `first` on, up to `ahead` before they are taken.
  BatchQueue(SampleReader reader, MakeBatch make, int64_t first, int workers, int64_t ahead,
             Device device);
  /// Stops the threads after the batches that they are preparing.
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  /// The next batch, ready for use on the current stream of its device; nothing at the end. Throws
  /// what the preparation threw; the queue has then to be destroyed.
  std::optional<Batch> take();

 private:
  struct Prepared {
    std::optional<Batch> batch;
    Event copied;  ///< reached when the batch is on the device
    std::exception_ptr failure;
  };
  void work();
  /// Takes a number and reads its samples. Returns nothing when there is no more to do.
  struct Ticket {
    int64_t number;
    std::optional<std::vector<Sample>> samples;
    std::exception_ptr failure;
  };
  std::optional<Ticket> next_ticket();
  /// The next number to prepare, once there is room for it; nothing when the threads shall end.
  std::optional<int64_t> next_number();
  Prepared prepare(Ticket ticket, const Stream& side) const;

  const SampleReader reader_;
  const MakeBatch make_;
  const int64_t ahead_;
  const Device device_;

  Mutex reading_;  ///< held while a sequential reader is read
  Mutex mutex_;
  CondVar changed_;
  int64_t next_ LS_GUARDED_BY(mutex_);    ///< to be prepared
  int64_t wanted_ LS_GUARDED_BY(mutex_);  ///< to be taken
  bool stop_ LS_GUARDED_BY(mutex_) = false;
  std::map<int64_t, Prepared> prepared_ LS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
