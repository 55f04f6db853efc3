#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/loader/dataset.h"
#include "data/loader/sampler.h"

namespace lockstep::data {

/// The samples of a batch, joined: by default the tensors of each place, stacked.
using Batch = std::vector<Tensor>;

/// Stacks the tensors of each place. Throws ShapeError naming the sample that has another number of
/// tensors, or another shape, than the first.
Batch stack_samples(std::span<const Sample> samples);

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool drop_last = false;  ///< leaves out a last batch of fewer samples
  /// The order of samples; null: 0, 1, 2, ..., or with `shuffle` an order of its own for each
  /// epoch. Not for iterable data sets, and not with `shuffle`.
  std::shared_ptr<const Sampler> sampler = {};
  bool shuffle = false;
  uint64_t seed = 0;
  /// Threads that prepare batches; with 0 the caller's does. Batches are the same for any number.
  int workers = 0;
  /// Batches that are prepared ahead, for each worker.
  int prefetch = 2;
  /// Changes each sample, on the worker: decodes it, or augments it by random operators, which draw
  /// numbers of their own for each (seed, epoch, position).
  std::function<Sample(Sample)> transform = {};
  std::function<Batch(std::span<const Sample>)> collate = stack_samples;
  /// Where batches are wanted. Workers copy them there through pinned memory on a side stream.
  Device device = kCPU;
};

/// Prepares batches of samples, in an order that is a pure function of seed, epoch and position.
///
///   data::DataLoader loader(samples, {.batch_size = 32, .shuffle = true, .workers = 2});
///   for (int epoch = 0; epoch < 3; ++epoch)
///     for (const data::Batch& batch : loader) train_on(batch[0], batch[1]);
///
/// What a data set, `transform` or `collate` throws is thrown by the call that would have returned
/// the batch; the loader then stays at that batch. For one consumer thread.
class DataLoader {
 public:
  /// Throws Error for a batch size, prefetch or number of workers that cannot be.
  DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options = {});
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;

  /// Batches of an epoch; nothing for an iterable data set.
  std::optional<int64_t> batches() const;

  /// The next batch, ready for use on the current stream; nothing at the end of an epoch. The call
  /// after that begins the next epoch.
  std::optional<Batch> next();

  /// The batch that `next` returns next. To go on later where a run was, save it, and pass it to
  /// set_position of a loader with the same options but for `workers` and `prefetch`.
  struct Position {
    int64_t epoch = 0;
    int64_t batch = 0;
    friend bool operator==(const Position&, const Position&) = default;
  };
  Position position() const;
  /// Throws Error for numbers below 0.
  void set_position(Position position);

  /// The batches that are left of the epoch, for range-based for.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    Iterator() = default;
    explicit Iterator(DataLoader& loader) : loader_(&loader), batch_(loader.next()) {}
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    bool operator==(const Iterator& other) const {
      return batch_.has_value() == other.batch_.has_value();
    }

   private:
    DataLoader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(*this); }
  Iterator end() { return {}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::data
