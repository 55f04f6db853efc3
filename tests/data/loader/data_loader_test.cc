#include "data/loader/data_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "tests/core/expect_error.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using Numbers = std::vector<int64_t>;

std::shared_ptr<const Dataset> count_to(int64_t size) {
  return std::make_shared<TensorDataset>(std::vector<Tensor>{arange(size), arange(size) * 10});
}

Numbers values(const Tensor& tensor) {
  const Tensor here = tensor.to(kCPU).to(DType::kI64);
  return {here.data<int64_t>(), here.data<int64_t>() + here.numel()};
}

/// First tensors of all batches that are left of the epoch.
std::vector<Numbers> rest_of_epoch(DataLoader& loader) {
  std::vector<Numbers> batches;
  for (const Batch& batch : loader) batches.push_back(values(batch[0]));
  return batches;
}

/// Numbers 0 to size - 1, one after the other.
class Counting final : public IterableDataset {
 public:
  explicit Counting(int64_t size) : size_(size) {}
  std::unique_ptr<SampleStream> open(int64_t epoch) const override {
    struct Stream final : SampleStream {
      int64_t next_number = 0, end = 0, more = 0;
      std::optional<Sample> next() override {
        if (next_number == end) return std::nullopt;
        return Sample{tensor(next_number++ + more)};
      }
    };
    auto stream = std::make_unique<Stream>();
    stream->end = size_;
    stream->more = 100 * epoch;
    return stream;
  }

 private:
  int64_t size_;
};

TEST(DataLoader, BatchesAreStackedSamples) {
  DataLoader loader(count_to(5), {.batch_size = 2});
  EXPECT_EQ(loader.batches(), 3);
  std::optional<Batch> batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->size(), 2U);
  EXPECT_EQ(values((*batch)[1]), (Numbers{0, 10}));
  EXPECT_THAT(rest_of_epoch(loader), ElementsAre(Numbers{2, 3}, Numbers{4}));
  EXPECT_THAT(rest_of_epoch(loader), ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{4}));
  DataLoader whole(count_to(5), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(whole.batches(), 2);
  EXPECT_THAT(rest_of_epoch(whole), ElementsAre(Numbers{0, 1}, Numbers{2, 3}));
}

TEST(DataLoader, TheOrderDoesNotDependOnTheWorkers) {
  std::vector<std::vector<Numbers>> wanted;
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(count_to(100),
                      {.batch_size = 7, .shuffle = true, .seed = 3, .workers = workers});
    const std::vector<std::vector<Numbers>> epochs = {rest_of_epoch(loader), rest_of_epoch(loader)};
    EXPECT_NE(epochs[0], epochs[1]);
    if (wanted.empty()) wanted = epochs;
    EXPECT_EQ(epochs, wanted) << workers;
  }
}

TEST(DataLoader, SamplesOfAStreamComeInItsOrderWithAnyWorkers) {
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(std::make_shared<Counting>(8), {.batch_size = 3, .workers = workers});
    EXPECT_FALSE(loader.batches());
    EXPECT_THAT(rest_of_epoch(loader),
                ElementsAre(Numbers{0, 1, 2}, Numbers{3, 4, 5}, Numbers{6, 7}));
    EXPECT_THAT(rest_of_epoch(loader),
                ElementsAre(Numbers{100, 101, 102}, Numbers{103, 104, 105}, Numbers{106, 107}));
    DataLoader whole(std::make_shared<Counting>(8),
                     {.batch_size = 3, .drop_last = true, .workers = workers});
    EXPECT_EQ(rest_of_epoch(whole).size(), 2U);
  }
}

TEST(DataLoader, ASavedPositionGoesOnAtItsBatch) {
  for (const int workers : {0, 2}) {
    const DataLoaderOptions options{
        .batch_size = 4, .shuffle = true, .seed = 1, .workers = workers};
    DataLoader loader(count_to(20), options);
    rest_of_epoch(loader);
    loader.next();
    loader.next();
    const DataLoader::Position position = loader.position();
    EXPECT_EQ(position, (DataLoader::Position{1, 2}));
    const std::vector<Numbers> rest = rest_of_epoch(loader);
    DataLoader resumed(count_to(20), options);
    resumed.next();
    resumed.set_position(position);
    EXPECT_EQ(rest_of_epoch(resumed), rest);
    DataLoader stream(std::make_shared<Counting>(8), {.batch_size = 3, .workers = workers});
    stream.set_position({2, 1});
    EXPECT_THAT(rest_of_epoch(stream), ElementsAre(Numbers{203, 204, 205}, Numbers{206, 207}));
  }
}

TEST(DataLoader, RandomChangesDependOnSeedEpochAndPositionAlone) {
  const auto add_noise = [](Sample sample) {
    return Sample{randint(0, 1'000'000, {2}) + sample[0] * 0};
  };
  manual_seed(5);
  const RandomKey before = default_generator().state();
  std::vector<Numbers> wanted;
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(count_to(12),
                      {.batch_size = 5, .seed = 9, .workers = workers, .transform = add_noise});
    const std::vector<Numbers> batches = rest_of_epoch(loader);
    if (wanted.empty()) wanted = batches;
    EXPECT_EQ(batches, wanted) << workers;
    EXPECT_NE(rest_of_epoch(loader), wanted);
  }
  std::set<int64_t> different;
  for (const Numbers& batch : wanted) different.insert(batch.begin(), batch.end());
  EXPECT_GT(different.size(), 22U);
  EXPECT_EQ(default_generator().state(), before);
  DataLoader stream(std::make_shared<Counting>(12),
                    {.batch_size = 5, .seed = 9, .workers = 2, .transform = add_noise});
  EXPECT_EQ(rest_of_epoch(stream), wanted);
}

/// Fails for sample 5 as long as it is told to.
struct Failing final : Dataset {
  std::atomic<bool> fails = true;
  int64_t size() const override { return 8; }
  Sample get(int64_t index) const override {
    if (index == 5 && fails) throw DataError("[test] sample 5 is broken");
    return {tensor(index)};
  }
};

TEST(DataLoader, AnErrorComesWithItsBatchWhichCanBeTriedAgain) {
  for (const int workers : {0, 1, 3}) {
    const auto samples = std::make_shared<Failing>();
    DataLoader loader(samples, {.batch_size = 2, .workers = workers});
    EXPECT_TRUE(loader.next());
    EXPECT_TRUE(loader.next());
    expect_error<DataError>([&] { loader.next(); }, "sample 5 is broken");
    expect_error<DataError>([&] { loader.next(); }, "sample 5 is broken");
    EXPECT_EQ(loader.position(), (DataLoader::Position{0, 2}));
    samples->fails = false;
    EXPECT_THAT(rest_of_epoch(loader), ElementsAre(Numbers{4, 5}, Numbers{6, 7}));
  }
}

TEST(DataLoader, WorkersPrepareNoMoreThanWasAskedFor) {
  struct Counted final : Dataset {
    mutable std::atomic<int64_t> read = 0;
    int64_t size() const override { return 100; }
    Sample get(int64_t index) const override {
      ++read;
      return {tensor(index)};
    }
  };
  const auto samples = std::make_shared<Counted>();
  DataLoader loader(samples, {.workers = 2, .prefetch = 3});
  loader.next();
  while (samples->read < 7) std::this_thread::yield();  // the one taken and six ahead
  loader.next();
  while (samples->read < 8) std::this_thread::yield();
  EXPECT_EQ(samples->read, 8);
}

TEST(DataLoader, MayBeDestroyedWhileWorkersWork) {
  for (int i = 0; i < 20; ++i) {
    DataLoader loader(count_to(1000), {.batch_size = 3, .workers = 3});
    for (int batch = 0; batch < i; ++batch) loader.next();
  }
}

TEST(DataLoader, BatchesComeToTheDevice) {
  const Device device{DeviceType::kHost, 0};
  if (find_runtime(device) == nullptr) GTEST_SKIP() << "no device host:0";
  for (const int workers : {0, 2}) {
    DataLoader loader(count_to(10), {.batch_size = 4, .workers = workers, .device = device});
    for (const Batch& batch : loader) EXPECT_EQ(batch[0].device(), device);
    EXPECT_THAT(rest_of_epoch(loader),
                ElementsAre(Numbers{0, 1, 2, 3}, Numbers{4, 5, 6, 7}, Numbers{8, 9}));
  }
}

TEST(DataLoader, SamplesThatDoNotFitTogetherAreNamed) {
  struct Growing final : Dataset {
    int64_t size() const override { return 3; }
    Sample get(int64_t index) const override { return {zeros({index + 1})}; }
  };
  DataLoader loader(std::make_shared<Growing>(), {.batch_size = 2});
  expect_error<ShapeError>([&] { loader.next(); }, "tensor 0 of sample 1", "[2]", "[1]");
  DataLoader joined(std::make_shared<Growing>(),
                    {.batch_size = 3, .collate = [](std::span<const Sample> samples) {
                       return Batch{tensor(static_cast<int64_t>(samples.size()))};
                     }});
  EXPECT_EQ(values((*joined.next())[0]), (Numbers{3}));
}

TEST(DataLoader, OptionsThatCannotBeAreRefused) {
  EXPECT_THROW(DataLoader(count_to(1), {.batch_size = 0}), Error);
  EXPECT_THROW(DataLoader(count_to(1), {.workers = -1}), Error);
  EXPECT_THROW(DataLoader(count_to(1), {.prefetch = 0}), Error);
  const auto sampler = std::make_shared<SequentialSampler>(1);
  EXPECT_THROW(DataLoader(count_to(1), {.sampler = sampler, .shuffle = true}), Error);
  EXPECT_THROW(DataLoader(std::make_shared<Counting>(1), {.shuffle = true}), Error);
  EXPECT_THROW(DataLoader(count_to(1)).set_position({-1, 0}), Error);
  EXPECT_THROW(TensorDataset({}), ShapeError);
  EXPECT_THROW(TensorDataset({zeros({2}), zeros({3})}), ShapeError);
  EXPECT_THROW(TensorDataset({tensor(1)}), ShapeError);
}

TEST(DataLoader, AnEmptyDataSetHasNoBatches) {
  DataLoader loader(count_to(0), {.shuffle = true, .workers = 1});
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.position().epoch, 1);
}

}  // namespace
}  // namespace lockstep::data
