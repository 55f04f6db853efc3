#include "dist/ddp/sync_batch_norm.h"

#include <string_view>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/function.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"

namespace lockstep::dist {

namespace {

struct Settings {
  Tensor running_mean;  ///< undefined without running statistics
  Tensor running_var;
  double momentum;
  double eps;
  ProcessGroup* group;
};

/// Statistics over all ranks' samples: f64, [channels] each, except `count` and `any`, which are
/// [1].
struct Statistics {
  Tensor mean;
  Tensor variance;  ///< divided by the count
  Tensor unbiased;  ///< divided by the count - 1
  Tensor count;     ///< at least 1
  Tensor any;       ///< whether there is an element at all
};

/// Runs `body`; an error aborts the group, as the other ranks would wait for data that a rank that
/// throws does not send.
template <class F>
auto or_end_the_job(ProcessGroup& group, F&& body) {
  try {
    return body();
  } catch (const DistError&) {
    throw;  // the other ranks already know of it
  } catch (const std::exception& error) {
    group.abort(fmt::format("sync_batch_norm failed on this rank: {}", error.what()));
    throw;
  }
}

void check_vector(std::string_view name, const Tensor& vector, int64_t channels) {
  LS_CHECK(!vector.defined() || (vector.dim() == 1 && vector.numel() == channels), ShapeError,
           "[sync_batch_norm] expected a {} for each channel, shape [{}], got {}.", name, channels,
           vector.shape());
}

void check(const Tensor& input, const Tensor& weight, const Tensor& bias,
           const Settings& settings) {
  LS_CHECK(is_floating(input.dtype()), DTypeError,
           "[sync_batch_norm] expected a floating input, got {}.", to_string(input.dtype()));
  LS_CHECK(input.dim() >= 2, ShapeError,
           "[sync_batch_norm] expected input [batch, channels, ...], got shape {}.", input.shape());
  check_vector("weight", weight, input.size(1));
  check_vector("bias", bias, input.size(1));
  check_vector("running mean", settings.running_mean, input.size(1));
  check_vector("running variance", settings.running_var, input.size(1));
  LS_CHECK(settings.running_mean.defined() == settings.running_var.defined(), ShapeError,
           "[sync_batch_norm] expected both running mean and variance or neither, got one.");
}

/// Returns this rank's statistics in one vector: means, sums of squared distances from them, and
/// the number of elements of a channel.
Tensor own_statistics(const Tensor& input) {
  const int64_t channels = input.size(1);
  const TensorOptions options{DType::kF64, input.device()};
  if (input.numel() == 0) return zeros({2 * channels + 1}, options);
  // A momentum of 1 writes the batch's own statistics, in f64, to the running ones.
  const Tensor nothing = zeros({channels}, options);
  const auto [out, rounded_mean, rstd, mean, unbiased] =
      fused_batch_norm(input, {}, {}, nothing, nothing, 1.0, 1.0);
  const auto count = static_cast<double>(input.numel() / channels);
  // The unbiased variance of one element is 0 / 0.
  const Tensor squares = count > 1 ? unbiased * (count - 1) : nothing;
  return cat({mean, squares, full({1}, count, options)});
}

Statistics statistics_of_all(const Tensor& input, ProcessGroup& group) {
  const int64_t channels = input.size(1);
  const Tensor own = own_statistics(input);
  const Tensor all = empty({group.size(), own.numel()}, own.options());
  group.all_gather(all, own).wait();
  const Tensor means = all.slice(1, 0, channels);
  const Tensor squares = all.slice(1, channels, 2 * channels);
  const Tensor counts = all.slice(1, 2 * channels, 2 * channels + 1);
  const Tensor total = sum(counts, {0});
  const Tensor count = clamp_min(total, 1.0);
  const Tensor mean = sum(means * counts, {0}) / count;
  // Sums within the ranks, plus the distances of the ranks' means from the common mean.
  const Tensor distances = sum(squares + square(means - mean) * counts, {0});
  return {mean, distances / count, distances / (count - 1.0), count, gt(total, 0.0)};
}

/// Updates running statistics like batch_norm: in f64, with one rounding.
void move(const Tensor& running, const Tensor& found, const Tensor& any, double momentum) {
  if (!running.defined()) return;
  const Tensor before = running.to(DType::kF64);
  copy_(running, where(any, before * (1 - momentum) + found * momentum, before));
}

Tensor widened(const Tensor& tensor) {
  return size_of(tensor.dtype()) == 2 ? tensor.to(DType::kF32) : tensor;
}

struct SyncBatchNorm : Function<SyncBatchNorm> {
  static constexpr bool once_differentiable = true;

  struct Kept {
    double eps;
    ProcessGroup* group;
    DType bias;
  };

  static Tensor forward(FunctionContext& ctx, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, const Settings& settings) {
    return or_end_the_job(*settings.group, [&] {
      check(input, weight, bias, settings);
      const Statistics all = statistics_of_all(input, *settings.group);
      move(settings.running_mean, all.mean, all.any, settings.momentum);
      move(settings.running_var, all.unbiased, all.any, settings.momentum);
      ctx.save_for_backward({input, weight, all.mean, all.variance, all.count});
      ctx.set_data(Kept{settings.eps, settings.group, bias.defined() ? bias.dtype() : DType::kF32});
      return batch_norm(input, weight, bias, all.mean, all.variance, false, 0, settings.eps);
    });
  }

  // With w the weight, x^ the normalised input and means over all ranks, the input's gradient is
  // w rstd (g - mean(g) - x^ mean(g x^)): that of fixed statistics, less a batch norm of the input.
  static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
    const Kept& kept = ctx.data<Kept>();
    return or_end_the_job(*kept.group, [&] {
      const Tensor& input = ctx.saved(0);
      const Tensor& weight = ctx.saved(1);
      const Tensor& mean = ctx.saved(2);
      const Tensor& variance = ctx.saved(3);
      const Tensor x = widened(input);
      // The backward's sums have the dtype of the weight: make it f64.
      const Tensor scale = weight.defined() ? weight.to(DType::kF64) : ones_like(mean);
      auto [dx, along, sums] =
          native_batch_norm_backward(widened(grad), x, scale, mean, variance, {}, {}, false,
                                     kept.eps, BoolList{ctx.needs_input_grad(0), true, true});
      Gradients gradients(3);
      if (ctx.needs_input_grad(1)) gradients[1] = along.to(weight.dtype());
      if (ctx.needs_input_grad(2)) gradients[2] = sums.to(kept.bias);
      if (!ctx.needs_input_grad(0)) return gradients;
      const int64_t channels = mean.numel();
      const Tensor of_all = cat({along, sums});
      kept.group->all_reduce(of_all).wait();
      const Tensor share = scale * rsqrt(variance + kept.eps) / ctx.saved(4);
      const Tensor by_statistics = batch_norm(x, share * of_all.slice(0, 0, channels),
                                              share * of_all.slice(0, channels, 2 * channels), mean,
                                              variance, false, 0, kept.eps);
      gradients[0] = (dx - by_statistics).to(input.dtype());
      return gradients;
    });
  }
};

}  // namespace

Tensor sync_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                       OptionalTensor running_mean, OptionalTensor running_var, bool training,
                       double momentum, double eps, ProcessGroup* group) {
  if (!training || group == nullptr || group->size() == 1) {
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  }
  // Like batch_norm, computes in f32 under autocast.
  const bool casts = is_autocast_enabled(input.device().type) && size_of(input.dtype()) == 2;
  return SyncBatchNorm::apply(casts ? input.to(DType::kF32) : input, weight.value_or_undefined(),
                              bias.value_or_undefined(),
                              Settings{running_mean.value_or_undefined(),
                                       running_var.value_or_undefined(), momentum, eps, group});
}

}  // namespace lockstep::dist
