// Training of a model whose parameters, gradients and optimizer state are spread over the ranks.
// Ranks are processes under mpirun, else two threads.

#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

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

/// A model without memory for its weights.
std::unique_ptr<ls::nn::Mlp> build() {
  ls::manual_seed(1);  // the same weights on all ranks
  const ls::nn::DeferValuesGuard later;
  return std::make_unique<ls::nn::Mlp>(
      ls::nn::MlpOptions{.inputs = 2, .hidden_widths = {256, 256, 256}, .classes = 2});
}

double train(ls::dist::ProcessGroup& group) {
  const std::unique_ptr<ls::nn::Mlp> model = build();
  // Each layer is a unit: it gets its values, and then this rank keeps its part of them.
  const auto sharded = ls::dist::fully_shard(
      *model, group,
      {.average = true, .fill = [&](const ls::Tensor& parameter, const ls::Tensor& into) {
         model->fill_parameter(parameter, into);
       }});
  std::vector<ls::nn::NamedParameter> parts;
  for (const auto& each : sharded->parameters()) parts.push_back({each.name, each.tensor});
  ls::train::AdamW optimizer(parts, {});
  if (group.rank() == 0) {
    std::printf("%ld parameters, of which each of %d ranks keeps %ld bytes\n",
                model->parameter_count(), group.size(), sharded->parameter_bytes());
  }

  const ls::Tensor points = ls::empty({64, 2}, ls::DType::kF32);
  const ls::Tensor classes = ls::empty({64}, ls::DType::kI64);
  double last = 0;
  for (int64_t step = 0; step < 200; ++step) {
    draw_points(step * group.size() + group.rank(), points, classes);
    sharded->begin_step();
    const ls::Tensor loss = ls::cross_entropy_loss(model->forward(points), classes);
    loss.backward();    // layers are gathered again, and gradients go to the ranks that keep them
    sharded->finish();  // this rank's part of the averaged gradients is there
    optimizer.step(sharded->gradients(), 2e-3, 1);
    last = loss.item<float>();
    if (group.rank() == 0 && step % 50 == 0) std::printf("step %3ld  loss %.4f\n", step, last);
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
