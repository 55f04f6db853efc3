// Loads the backends, trains one model on the cpu and on both devices, and compares.

#include <dlfcn.h>
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace lockstep;

namespace {

constexpr int kSteps = 100;

/// Losses per sample of training on `device`. The task: in which of 4 directions does a point lie?
std::vector<float> losses_on(Device device) {
  const DefaultDeviceGuard everything_there(device);
  manual_seed(3);
  Tensor samples = empty({64, 8});
  normal_(samples);
  const Tensor labels = samples.slice(1, 0, 4).argmax(1);
  nn::Mlp model({.inputs = 8, .hidden_widths = {32, 32}, .classes = 4});
  const Tensor rate = full({}, -0.2f / 64);

  std::vector<float> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor loss = nn::sum_of_losses(model, samples, labels);
    loss.backward();
    losses.push_back(loss.item<float>() / 64);
    const NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) {
      parameter.add_(parameter.grad().mul(rate));
      parameter.set_grad({});
    }
  }
  return losses;
}

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "train: %s\n", why);
  std::exit(1);
}

/// Loads a backend and returns its function `name`, which counts kernels.
int64_t (*load(const char* path, const char* name))() {
  void* const library = dlopen(path, RTLD_NOW);
  if (library == nullptr) stop(dlerror());
  const auto count = reinterpret_cast<int64_t (*)()>(dlsym(library, name));
  if (count == nullptr) stop(dlerror());
  return count;
}

/// Trains on the device without streams, whose own kernels round differently from the cpu's.
void try_vault(const std::vector<float>& expected) {
  const auto kernel_calls = load(VAULT_BACKEND, "vault_kernel_calls");
  const Device vault = parse_device("vault:0");
  const CopyCount before = hidden_copies();
  const std::vector<float> losses = losses_on(vault);
  const CopyCount after = hidden_copies();

  float worst = 0;
  for (int step = 0; step < kSteps; ++step) {
    worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    if (step % 20 == 0 || step == kSteps - 1) {
      std::printf("step %3d  cpu %.6f  vault %.6f\n", step, expected[step], losses[step]);
    }
  }
  const MemoryStats memory = allocator(vault).stats();
  std::printf("largest difference %.2g, %lld calls of own kernels, %lld hidden copies\n",
              static_cast<double>(worst), static_cast<long long>(kernel_calls()),
              static_cast<long long>(after.copies - before.copies));
  std::printf("vault memory: %lld bytes at most, %lld left\n",
              static_cast<long long>(memory.peak_allocated),
              static_cast<long long>(memory.allocated));

  if (!(losses.back() < losses.front() / 2)) stop("the loss does not fall");
  if (!(worst < 1e-4f)) stop("the vault does not compute what the cpu does");
  if (kernel_calls() < kSteps) stop("the vault's own kernels were not called");
  if (memory.allocated != 0) stop("memory of the vault leaks");
}

/// Uses the streams of `device`: an event orders two of them, and an error of a kernel is thrown by
/// the synchronization.
void use_streams(Device device) {
  const OwnedStream producer(device), consumer(device);
  Tensor squares, sum;
  Event ready;
  {
    const StreamGuard guard(producer.get());
    const Tensor numbers = arange(1000).to(device);
    squares = numbers.mul(numbers);
    ready.record(producer.get());
  }
  consumer.get().wait_event(ready);
  {
    const StreamGuard guard(consumer.get());
    sum = squares.sum();
    if (sum.item<int64_t>() != 332833500) stop("a stream did not wait for the event");
  }

  const Tensor quotient = remainder(squares, squares.sub(squares));
  try {
    synchronize(device);
  } catch (const Error& error) {
    std::printf("thrown by synchronize: %s\n", error.what());
    return;
  }
  stop("no synchronization threw the error of a kernel");
}

/// Trains on the device with streams. It runs the cpu's kernels, so the bits are the cpu's.
void try_worker(const std::vector<float>& expected) {
  const auto kernels = load(WORKER_BACKEND, "worker_kernels");
  const Device device = parse_device("worker:0");
  if (losses_on(device) != expected) stop("the worker does not compute what the cpu does");
  use_streams(device);
  synchronize(device);
  const MemoryStats memory = allocator(device).stats();
  std::printf("worker: %lld kernels, %lld bytes at most, %lld left\n",
              static_cast<long long>(kernels()), static_cast<long long>(memory.peak_allocated),
              static_cast<long long>(memory.allocated));
  if (kernels() < kSteps) stop("the worker's streams did not run the kernels");
  if (memory.allocated != 0) stop("memory of the worker leaks");
}

}  // namespace

int main() {
  const std::vector<float> expected = losses_on(kCPU);
  try_vault(expected);
  try_worker(expected);
  std::puts("good");
}
