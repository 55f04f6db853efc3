#include "data/loader/data_loader.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/mix_bits.h"
#include "core/ops/view/shape.h"
#include "core/tensor/random_state_guard.h"
#include "data/loader/batch_queue.h"

namespace lockstep::data {

Batch stack_samples(std::span<const Sample> samples) {
  Batch batch;
  for (size_t place = 0; place < samples.front().size(); ++place) {
    std::vector<Tensor> column;
    for (size_t i = 0; i < samples.size(); ++i) {
      LS_CHECK(samples[i].size() == samples.front().size(), ShapeError,
               "[DataLoader] sample {} of the batch has {} tensors: expected {} like the first.", i,
               samples[i].size(), samples.front().size());
      const Tensor& tensor = samples[i][place];
      const Tensor& first = samples.front()[place];
      LS_CHECK(
          same(tensor.sizes(), first.sizes()) && tensor.dtype() == first.dtype(), ShapeError,
          "[DataLoader] tensor {} of sample {} is {}: expected {} like the first of its batch. "
          "Give samples one shape, or a `collate` that joins theirs.",
          place, i, to_string(tensor), to_string(first));
      column.push_back(tensor);
    }
    batch.push_back(stack(column));
  }
  return batch;
}

namespace {

DataLoaderOptions checked(DataLoaderOptions options) {
  LS_CHECK(options.batch_size >= 1, Error,
           "[DataLoader] expected a batch_size of at least 1, got {}.", options.batch_size);
  LS_CHECK(options.workers >= 0 && options.prefetch >= 1, Error,
           "[DataLoader] expected workers from 0 on and a prefetch from 1 on, got {} and {}.",
           options.workers, options.prefetch);
  LS_CHECK(!options.shuffle || !options.sampler, Error,
           "[DataLoader] shuffle and a sampler both say the order: expected one of them.");
  return options;
}

/// Seed of the numbers that are drawn for one sample.
uint64_t seed_of(uint64_t seed, int64_t epoch, int64_t position) {
  const uint64_t of_epoch = mix_bits(seed + static_cast<uint64_t>(epoch + 1) * kGoldenRatio);
  return mix_bits(of_epoch + static_cast<uint64_t>(position + 1) * kGoldenRatio);
}

}  // namespace

struct DataLoader::State {
  DataLoaderOptions options;
  std::shared_ptr<const Dataset> dataset;  ///< or
  std::shared_ptr<const IterableDataset> iterable;
  Position position;
  SampleReader reader;                ///< of the epoch under way, without workers
  std::unique_ptr<BatchQueue> queue;  ///< of the epoch under way, with workers

  int64_t batches() const {
    const int64_t samples = options.sampler->size();
    const int64_t size = options.batch_size;
    return options.drop_last ? samples / size : (samples + size - 1) / size;
  }

  SampleReader reader_of(int64_t epoch, int64_t first) const {
    return dataset ? indexed_reader(epoch) : sequential_reader(epoch, first);
  }

  SampleReader indexed_reader(int64_t epoch) const {
    return {.read = [this, epoch](int64_t number) -> std::optional<std::vector<Sample>> {
      if (number >= batches()) return std::nullopt;
      const int64_t begin = number * options.batch_size;
      const int64_t end = std::min(begin + options.batch_size, options.sampler->size());
      const RandomStateGuard random_state_stays;
      std::vector<Sample> samples;
      for (int64_t position = begin; position < end; ++position) {
        default_generator().manual_seed(seed_of(options.seed, epoch, position));
        samples.push_back(changed(dataset->get(options.sampler->index(epoch, position))));
      }
      return samples;
    }};
  }

  SampleReader sequential_reader(int64_t epoch, int64_t first) const {
    std::shared_ptr<SampleStream> stream = iterable->open(epoch);
    stream->skip(first * options.batch_size);
    return {.read = [this, stream](int64_t) -> std::optional<std::vector<Sample>> {
              std::vector<Sample> samples;
              while (static_cast<int64_t>(samples.size()) < options.batch_size) {
                std::optional<Sample> sample = stream->next();
                if (!sample) break;
                samples.push_back(*std::move(sample));
              }
              const bool is_short = static_cast<int64_t>(samples.size()) < options.batch_size;
              if (samples.empty() || (is_short && options.drop_last)) return std::nullopt;
              return samples;
            },
            .is_sequential = true};
  }

  Sample changed(Sample sample) const {
    return options.transform ? options.transform(std::move(sample)) : std::move(sample);
  }

  MakeBatch maker(int64_t epoch) const {
    return [this, epoch](int64_t number, std::vector<Sample> samples) {
      if (iterable) {
        const RandomStateGuard random_state_stays;
        int64_t position = number * options.batch_size;
        for (Sample& sample : samples) {
          default_generator().manual_seed(seed_of(options.seed, epoch, position++));
          sample = changed(std::move(sample));
        }
      }
      return options.collate(samples);
    };
  }

  void stop() {
    queue.reset();
    reader = {};
  }

  std::optional<Batch> next() {
    try {
      std::optional<Batch> batch = options.workers > 0 ? next_of_queue() : next_of_reader();
      if (batch) {
        ++position.batch;
      } else {
        stop();
        position = {position.epoch + 1, 0};
      }
      return batch;
    } catch (...) {
      stop();
      throw;
    }
  }

  std::optional<Batch> next_of_queue() {
    if (!queue) {
      queue = std::make_unique<BatchQueue>(
          reader_of(position.epoch, position.batch), maker(position.epoch), position.batch,
          options.workers, int64_t{options.workers} * options.prefetch, options.device);
    }
    return queue->take();
  }

  std::optional<Batch> next_of_reader() {
    if (!reader.read) reader = reader_of(position.epoch, position.batch);
    std::optional<std::vector<Sample>> samples = reader.read(position.batch);
    if (!samples) return std::nullopt;
    Batch batch = maker(position.epoch)(position.batch, *std::move(samples));
    for (Tensor& tensor : batch) tensor = tensor.to(options.device);
    return batch;
  }
};

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : state_(std::make_unique<State>()) {
  LS_CHECK(dataset != nullptr, Error, "[DataLoader] the data set is null.");
  state_->options = checked(std::move(options));
  std::shared_ptr<const Sampler>& sampler = state_->options.sampler;
  const int64_t size = dataset->size();
  if (!sampler && state_->options.shuffle) {
    sampler = std::make_shared<RandomSampler>(size, state_->options.seed);
  } else if (!sampler) {
    sampler = std::make_shared<SequentialSampler>(size);
  }
  state_->dataset = std::move(dataset);
}

DataLoader::DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options)
    : state_(std::make_unique<State>()) {
  LS_CHECK(dataset != nullptr, Error, "[DataLoader] the data set is null.");
  LS_CHECK(!options.shuffle && !options.sampler, Error,
           "[DataLoader] samples of an iterable data set come in its own order: expected neither "
           "shuffle nor a sampler.");
  state_->options = checked(std::move(options));
  state_->iterable = std::move(dataset);
}

DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;

std::optional<int64_t> DataLoader::batches() const {
  if (state_->iterable) return std::nullopt;
  return state_->batches();
}

std::optional<Batch> DataLoader::next() { return state_->next(); }

DataLoader::Position DataLoader::position() const { return state_->position; }

void DataLoader::set_position(Position position) {
  LS_CHECK(position.epoch >= 0 && position.batch >= 0, Error,
           "[DataLoader] a position is negative: epoch {}, batch {}.", position.epoch,
           position.batch);
  state_->stop();
  state_->position = position;
}

}  // namespace lockstep::data
