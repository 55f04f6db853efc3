// ending_program COMPUTE END: ends while other threads compute, for process_exit_test.cc.
// COMPUTE: forward, convolve, backward, own (an operator of this file) or loader. END: return (from
// main()), exit, or exit-elsewhere (exit() on another thread than main()'s).

#include <lockstep/lockstep.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

using namespace lockstep;

namespace {

LS_OP(twice, Tensor(const Tensor&), "ending::twice(Tensor self) -> Tensor")
    .doc("2 self.")
    .structured([](const Tensor& self) { return one(self.sizes(), DType::kF32); });

void twice(const Out& out, const In& self) {
  for (int64_t i = 0; i < out.numel; ++i) out.data<float>()[i] = 2 * self.data<float>()[i];
}

LS_KERNEL(CPU, "ending::twice", twice, Strides::kContiguous);

void forward() {
  const Tensor x = ones({64, 64});
  (void)layer_norm(gelu(mm(x, x)) + x.t(), {64}).sum();
}

void convolve() {
  // Large enough for the library's convolutions.
  const Tensor images = ones({4, 16, 24, 24});
  const Tensor weight = ones({32, 16, 3, 3});
  (void)max_pool2d(relu(conv2d(images, weight, {}, {1, 1}, {1, 1})), {2, 2});
}

void backward() {
  const Tensor weight = ones({64, 64});
  weight.set_requires_grad();
  gelu(mm(ones({64, 64}), weight)).sum().backward();
}

void own() { (void)op_twice(ones({32})); }

class Numbers final : public data::Dataset {
 public:
  int64_t size() const override { return 1 << 20; }
  data::Sample get(int64_t index) const override {
    return {mm(full({16, 16}, static_cast<double>(index)), ones({16, 16}))};
  }
};

void load() {
  data::DataLoader loader(std::make_shared<Numbers>(), {.batch_size = 4, .workers = 2});
  for (const data::Batch& batch : loader) (void)batch[0].sum();
}

using Work = void (*)();
Work work_called(std::string_view name) {
  if (name == "forward") return forward;
  if (name == "convolve") return convolve;
  if (name == "backward") return backward;
  if (name == "own") return own;
  if (name == "loader") return load;
  std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const Work work = work_called(arguments[1]);
  const std::string_view end = arguments[2];
  constexpr int kThreads = 3;
  static constinit std::atomic<int> running = 0;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([work] {
      if (work != load) work();
      ++running;
      while (true) work();
    }).detach();
  }
  work == load ? forward() : work();
  while (running < kThreads) std::this_thread::yield();
  if (end == "exit-elsewhere") {
    std::thread([] { std::exit(0); }).join();
  }
  if (end == "exit") std::exit(0);
}
