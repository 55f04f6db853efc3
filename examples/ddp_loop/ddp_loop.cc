// Data-parallel training in a custom loop. Ranks are processes under mpirun, else two threads.

#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ls = lockstep;

namespace {

/// Draws points of the plane and their classes: 1 inside the unit circle, else 0. `seed` makes them
/// different in every step and on every rank.
void draw_points(int64_t seed, const ls::Tensor& points, const ls::Tensor& classes) {
  uint64_t state = static_cast<uint64_t>(seed) * 2654435761U + 1;
  const auto uniform = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(state >> 40) / static_cast<float>(1 << 24) * 3 - 1.5F;
  };
  for (int64_t i = 0; i < points.size(0); ++i) {
    float* const point = points.data<float>() + 2 * i;
    point[0] = uniform();
    point[1] = uniform();
    classes.data<int64_t>()[i] = std::hypot(point[0], point[1]) < 1 ? 1 : 0;
  }
}

double train(ls::dist::ProcessGroup& group) {
  ls::nn::Mlp model({.inputs = 2, .hidden_widths = {32, 32}, .classes = 2});
  ls::train::AdamW optimizer(model.named_parameters(), {});
  ls::dist::Ddp ddp(model, group);  // broadcasts rank 0's weights to all ranks

  const ls::Tensor points = ls::empty({64, 2}, ls::DType::kF32);
  const ls::Tensor classes = ls::empty({64}, ls::DType::kI64);
  double last = 0;
  for (int64_t step = 0; step < 300; ++step) {
    draw_points(step * group.size() + group.rank(), points, classes);
    const ls::Tensor loss = ls::cross_entropy_loss(model.forward(points), classes);
    loss.backward();  // gradients are averaged over the ranks when it returns
    optimizer.step(ddp.gradients(), 1e-2, 1);
    ddp.zero_grad();
    last = loss.item<float>();
    if (group.rank() == 0 && step % 100 == 0) std::printf("step %3ld  loss %.4f\n", step, last);
  }
  return last;
}

}  // namespace

int main() {
  double loss = 1;
  try {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
      loss = train(*ls::dist::mpi_group());
    } else {
      for (const std::exception_ptr& error :
           ls::dist::run_thread_ranks(2, [&](ls::dist::ProcessGroup& group) {
             const double own = train(group);
             if (group.rank() == 0) loss = own;
           })) {
        if (error) std::rethrow_exception(error);
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("last loss %.4f\n", loss);
  return loss < 0.2 ? 0 : 1;
}
