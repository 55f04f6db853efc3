// How much work a training step in BF16_MIXED queues on a GPU, and how many bytes it moves, by
// count: the numbers of docs/cuda.md. Differences between models of one and of two layers are those
// of a layer, whatever a step does besides.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/dispatch/op_counter.h"
#include "core/memory/caching_allocator.h"
#include "tests/emulation/fake_cublas_lt.h"
#include "tests/emulation/queued_work.h"
#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

constexpr int64_t kLength = 16, kWidth = 64;

constexpr const char* kGpt2 =
    "model {{ gpt2 {{ context_length: 16 layers: {} heads: 2 width: 64 dropout: 0 }} }} ";
constexpr const char* kLlama =
    "model {{ llama {{ context_length: 16 layers: {} heads: 4 kv_heads: 2 width: 64 }} }} ";

/// A trainer after its first step, in which casts and plans are made.
Trainer trainer_of(const TemporaryDirectory& folder, const char* model, const char* device,
                   int layers, int64_t batch) {
  Trainer trainer = Trainer::create(
      tiny_run(folder, fmt::format("device: \"{}\" precision: BF16_MIXED "
                                   "train {{ batch_size: {} micro_batch_size: {} }} ",
                                   device, batch, batch) +
                           fmt::format(fmt::runtime(model), layers)));
  trainer.step();
  return trainer;
}

emulation::QueuedWork::Counts queued(const char* model, int layers) {
  const TemporaryDirectory folder;
  Trainer trainer = trainer_of(folder, model, "cuda", layers, 8);
  emulation::QueuedWork work;
  trainer.step();
  return work.take();
}

/// What one more layer queues, by name.
emulation::QueuedWork::Counts queued_by_layer(const char* model) {
  emulation::QueuedWork::Counts counts = queued(model, 2);
  for (const auto& [name, count] : queued(model, 1)) counts[name] -= count;
  std::erase_if(counts, [](const auto& each) { return each.second == 0; });
  return counts;
}

std::string table(const emulation::QueuedWork::Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{:4} {}\n", count, name);
  return text;
}

int total(const emulation::QueuedWork::Counts& counts) {
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

/// Bytes that operators other than products and attention read and write in forward and backward.
/// They are the same operators on every device, and counted on the cpu.
int64_t bytes_besides_products(const char* model, int layers, int64_t batch) {
  const TemporaryDirectory folder;
  Trainer trainer = trainer_of(folder, model, "cpu", layers, batch);
  OpCounter counter;
  {
    const ModeGuard on(counter);
    trainer.step();
  }
  int64_t bytes = 0;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const auto& [name, count] : counter.counts(phase)) {
      if (count.flops == 0) bytes += count.bytes;
    }
  }
  return bytes;
}

/// Bytes by element of the residual stream and layer; those that do not grow with the batch, such
/// as of gradients of weights, are left out.
double bytes_by_element(const char* model) {
  const auto of_layer = [&](int64_t batch) {
    return bytes_besides_products(model, 2, batch) - bytes_besides_products(model, 1, batch);
  };
  return static_cast<double>(of_layer(16) - of_layer(8)) / (8 * kLength * kWidth);
}

/// Counts are those of the emulated GPU, with cuBLASLt's products.
class StepCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library_.is_fake()) GTEST_SKIP() << "a real GPU counts nothing";
  }

 private:
  cuda::CublasLtScope library_{cuda::CublasLtScope::Library::kPresent};
};

TEST_F(StepCounts, AGpt2LayerQueuesFewKernels) {
  const emulation::QueuedWork::Counts counts = queued_by_layer(kGpt2);
  EXPECT_EQ(counts.at("product"), 12) << "four forward, two for each of them backward";
  EXPECT_LE(total(counts), 43) << table(counts);
}

TEST_F(StepCounts, ALlamaLayerQueuesFewKernels) {
  const emulation::QueuedWork::Counts counts = queued_by_layer(kLlama);
  EXPECT_LE(total(counts), 50) << table(counts);
}

TEST_F(StepCounts, ALayerMovesFewBytesBesidesProducts) {
  EXPECT_LE(bytes_by_element(kGpt2), 56);
  EXPECT_LE(bytes_by_element(kLlama), 139);
}

TEST_F(StepCounts, NoKernelWidensLogits) {
  const emulation::QueuedWork::Counts counts = queued(kGpt2, 1);
  EXPECT_EQ(counts.at("loss_cross_entropy_rows_bf16"), 1);
  EXPECT_EQ(counts.at("loss_cross_entropy_backward_bf16"), 1);
  for (const auto& [name, count] : counts) {
    const bool is_loss = name.starts_with("loss_");
    EXPECT_FALSE(is_loss && name.find("f32") != std::string::npos) << name;
  }
}

/// Sizes of the memory that one step asks for on the GPU.
std::set<size_t> sizes_asked_for(const char* model, int64_t batch) {
  const TemporaryDirectory folder;
  Trainer trainer = trainer_of(folder, model, "cuda", 1, batch);
  CachingAllocator& memory = caching_allocator({DeviceType::kCUDA, 0});
  memory.record_memory_history(100'000, /*stacks=*/false);
  trainer.step();
  std::set<size_t> sizes;
  for (const TraceEntry& entry : memory.snapshot().trace) {
    if (entry.action == TraceEntry::Action::kAlloc) sizes.insert(entry.size);
  }
  memory.record_memory_history(0);
  return sizes;
}

TEST_F(StepCounts, NoMemoryHoldsLogitsInF32) {
  constexpr int64_t kBatch = 16, kVocabulary = 300;
  constexpr size_t kLogits = kBatch * kLength * kVocabulary;
  static_assert(2 * kLogits % 512 == 0, "the allocator rounds no size up");
  for (const char* model :
       {"model {{ gpt2 {{ vocab_size: 300 context_length: 16 layers: {} heads: 2 width: 64 "
        "dropout: 0 }} }} ",
        "model {{ llama {{ vocab_size: 300 context_length: 16 layers: {} heads: 4 kv_heads: 2 "
        "width: 64 }} }} "}) {
    const std::set<size_t> sizes = sizes_asked_for(model, kBatch);
    EXPECT_TRUE(sizes.contains(2 * kLogits)) << "the logits in bf16; " << model;
    EXPECT_FALSE(sizes.contains(4 * kLogits)) << model;
  }
}

}  // namespace
}  // namespace lockstep::train
