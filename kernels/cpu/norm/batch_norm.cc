#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/restrided.h"
#include "kernels/cpu/conv/channel_columns.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/factory/copy.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;  // minimum elements per task

/// Copies the tensors of a call to the layout of the input: row-major or channels-last.
Restrided images_like(const In& input, const char* op) {
  return {op, kCPU, &copy_elements,
          ChannelLayout(input).channels_last ? &channels_last_strides : &contiguous_strides};
}

/// The elements of one channel: `count` runs of `length` elements, `stride` apart.
template <class E>
struct Runs {
  E* data;
  int64_t count;
  int64_t length;
  int64_t stride;

  E* operator[](int64_t i) const { return data + i * stride; }
};

/// Provides the elements of successive channels in the compute type: in place, or copied into a
/// buffer if they are f16 or bf16, or in runs too short for fast loops. `write_back` stores what
/// was written to a buffer.
template <class T>
class Channels {
 public:
  using C = ComputeType<T>;

  /// `address` is null if there is nothing to write.
  Channels(const ChannelLayout& layout, void* address)
      : layout_(layout), data_(static_cast<T*>(address)) {
    if (address == nullptr || !is_buffered(layout)) return;
    buffer_ = std::make_unique_for_overwrite<C[]>(
        static_cast<size_t>(group(layout) * layout.per_channel()));
  }

  static bool is_buffered(const ChannelLayout& layout) {
    constexpr int64_t kFew = 8;
    return !std::is_same_v<T, C> || layout.places < kFew;
  }
  /// Number of channels copied together, so that adjacent channels share the cache lines read.
  static int64_t group(const ChannelLayout& layout) {
    return is_buffered(layout) && layout.places < 16 ? 16 : 1;
  }

  /// Loads channels [first, last), at most one group.
  void read(int64_t first, int64_t last) {
    first_ = first, last_ = last;
    if (!buffer_) return;
    copy([](T& element, C& buffered) { buffered = convert<C>(element); });
  }
  void start_writing(int64_t first, int64_t last) { first_ = first, last_ = last; }
  void write_back() {
    if (!buffer_) return;
    copy([](T& element, C& buffered) { element = convert<T>(buffered); });
  }
  Runs<C> operator[](int64_t channel) const {
    const int64_t n = layout_.per_channel();
    if (buffer_) return {buffer_.get() + (channel - first_) * n, 1, n, n};
    if constexpr (std::is_same_v<T, C>) {
      return {data_ + channel * layout_.places, layout_.batch, layout_.places,
              layout_.channels * layout_.places};
    }
    return {};
  }

 private:
  template <class Move>
  void copy(Move move) {
    const int64_t places = layout_.places;
    for (int64_t n = 0; n < layout_.batch; ++n) {
      for (int64_t c = first_; c < last_; ++c) {
        T* elements = data_ + (n * layout_.channels + c) * places;
        C* buffered = buffer_.get() + ((c - first_) * layout_.batch + n) * places;
        for (int64_t i = 0; i < places; ++i) move(elements[i], buffered[i]);
      }
    }
  }

  ChannelLayout layout_;
  T* data_;
  std::unique_ptr<C[]> buffer_;
  int64_t first_ = 0;
  int64_t last_ = 0;
};

/// Calls body(first, last) for groups of channels, in parallel.
template <class T, class Body>
void for_each_group(const ChannelLayout& layout, Body body) {
  const int64_t group = Channels<T>::group(layout);
  const int64_t work = std::max<int64_t>(1, group * layout.per_channel());
  parallel_for(0, (layout.channels + group - 1) / group, std::max<int64_t>(1, kGrain / work),
               [&](int64_t first, int64_t last) {
                 body(first * group, std::min(last * group, layout.channels), group);
               });
}

/// A vector of f64 with one number per channel, read from any floating dtype.
class Vector64 {
 public:
  explicit Vector64(int64_t channels) : values_(static_cast<size_t>(channels)) {}
  /// Reads a tensor, or fills with `otherwise` if it is undefined.
  Vector64(const In& in, int64_t channels, double otherwise)
      : values_(static_cast<size_t>(channels), otherwise) {
    if (!in.defined()) return;
    with_floating_type(in.dtype, [&]<class T>() {
      for (int64_t i = 0; i < channels; ++i) {
        values_[static_cast<size_t>(i)] = convert<double>(in.data<T>()[i * in.stride(0)]);
      }
    });
  }
  double& operator[](int64_t channel) { return values_[static_cast<size_t>(channel)]; }
  double operator[](int64_t channel) const { return values_[static_cast<size_t>(channel)]; }
  void store(const Out& out) const {
    with_floating_type(out.dtype, [&]<class T>() {
      for (size_t i = 0; i < values_.size(); ++i) out.data<T>()[i] = convert<T>(values_[i]);
    });
  }

 private:
  std::vector<double> values_;
};

/// Sum of term(element) over a channel.
template <class C, class Term>
double sum_over(const Runs<C>& runs, Term term) {
  WideSum sum;
  for (int64_t i = 0; i < runs.count; ++i) {
    const C* run = runs[i];
    sum.add(runs.length, [&](int64_t k) { return term(run[k]); });
  }
  return sum.total();
}

template <class C>
void normalise(const Runs<C>& y, const Runs<C>& x, C mean, C rstd, C weight, C bias) {
  for (int64_t i = 0; i < x.count; ++i) {
    const C* from = x[i];
    C* to = y[i];
    for (int64_t k = 0; k < x.length; ++k) {
      to[k] = std::fma((from[k] - mean) * rstd, weight, bias);
    }
  }
}

double reciprocal_root(double variance, double eps) { return 1.0 / std::sqrt(variance + eps); }

/// Mean and variance of one nonempty channel.
template <class C>
void find_statistics(const Runs<C>& x, double count, double& mean, double& variance) {
  const double centre = sum_over(x, [](C value) { return value; }) / count;
  const double squares = sum_over(x, [centre](C value) {
    const double d = static_cast<double>(value) - centre;
    return d * d;
  });
  mean = centre;
  variance = squares / count;
}

template <class T>
void find_statistics(const Columns<T>& columns, const T* x, double count, double* means,
                     double* variances) {
  const auto sums = columns.sum([&](int64_t at, int64_t) { return convert<double>(x[at]); });
  for (int64_t k = 0; k < columns.count(); ++k) means[k] = sums[k] / count;
  std::array<double, Columns<T>::kMost> centres{};
  std::copy_n(means, columns.count(), centres.begin());
  const auto squares = columns.sum([&](int64_t at, int64_t k) {
    const double d = convert<double>(x[at]) - centres[k];
    return d * d;
  });
  for (int64_t k = 0; k < columns.count(); ++k) variances[k] = squares[k] / count;
}

template <class T>
void normalise_columns(const Out& out, const In& input, const ChannelLayout& layout,
                       const Vector64& weights, const Vector64& biases, Vector64& means,
                       Vector64& variances, bool find, double eps) {
  using C = ComputeType<T>;
  const auto count = static_cast<double>(layout.per_channel());
  for_each_columns<T>(
      layout, Channels<T>::is_buffered(layout), [&](const Columns<T>& columns, int64_t first) {
        const T* x = input.data<T>();
        if (find) find_statistics(columns, x, count, &means[first], &variances[first]);
        typename Columns<T>::Numbers rstd{};
        for (int64_t k = 0; k < columns.count(); ++k) {
          rstd[k] = static_cast<C>(reciprocal_root(variances[first + k], eps));
        }
        const auto mean = columns.numbers(means), weight = columns.numbers(weights),
                   bias = columns.numbers(biases);
        columns.write(out.data<T>(), [&](int64_t at, int64_t k) {
          return std::fma((convert<C>(x[at]) - mean[k]) * rstd[k], weight[k], bias[k]);
        });
      });
}

/// Normalises by `means` and `variances`, which are first computed if `find` is set.
void normalise_all(const Out& out, const In& input, const In& weight, const In& bias,
                   Vector64& means, Vector64& variances, bool find, double eps) {
  const ChannelLayout layout(input);
  const auto count = static_cast<double>(layout.per_channel());
  const Vector64 weights(weight, layout.channels, 1), biases(bias, layout.channels, 0);
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    if (layout.channels_last) {
      return normalise_columns<T>(out, input, layout, weights, biases, means, variances, find, eps);
    }
    for_each_group<T>(layout, [&](int64_t first, int64_t last, int64_t group) {
      Channels<T> x(layout, input.address), y(layout, out.address);
      for (int64_t start = first; start < last; start += group) {
        const int64_t end = std::min(last, start + group);
        x.read(start, end);
        y.start_writing(start, end);
        for (int64_t c = start; c < end; ++c) {
          if (find && count > 0) find_statistics(x[c], count, means[c], variances[c]);
          normalise(y[c], x[c], static_cast<C>(means[c]),
                    static_cast<C>(reciprocal_root(variances[c], eps)), static_cast<C>(weights[c]),
                    static_cast<C>(biases[c]));
        }
        y.write_back();
      }
    });
  });
}

void fused_batch_norm(const Out& given_out, const Out& save_mean, const Out& save_invstd,
                      const Out& new_mean, const Out& new_var, const In& given_input,
                      const In& weight, const In& bias, const In& running_mean,
                      const In& running_var, double momentum, double eps) {
  Restrided images = images_like(given_input, "batch_norm");
  const Out out = images.write(given_out);
  const In input = images.read(given_input);
  const ChannelLayout layout(input);
  Vector64 means(layout.channels), variances(layout.channels), roots(layout.channels);
  normalise_all(out, input, weight, bias, means, variances, true, eps);
  for (int64_t c = 0; c < layout.channels; ++c) roots[c] = reciprocal_root(variances[c], eps);
  images.finish();
  means.store(save_mean);
  roots.store(save_invstd);
  if (!new_mean.defined()) return;
  Vector64 moved_mean(running_mean, layout.channels, 0);
  Vector64 moved_var(running_var, layout.channels, 0);
  const auto count = static_cast<double>(layout.per_channel());
  for (int64_t c = 0; c < layout.channels && count > 0; ++c) {
    const double unbiased = variances[c] * count / (count - 1);
    moved_mean[c] = (1 - momentum) * moved_mean[c] + momentum * means[c];
    moved_var[c] = (1 - momentum) * moved_var[c] + momentum * unbiased;
  }
  moved_mean.store(new_mean);
  moved_var.store(new_var);
}

void batch_norm_no_training(const Out& given_out, const Out&, const Out&, const In& given_input,
                            const In& weight, const In& bias, const In& running_mean,
                            const In& running_var, double, double eps) {
  Restrided images = images_like(given_input, "batch_norm");
  const Out out = images.write(given_out);
  const In input = images.read(given_input);
  const int64_t channels = input.size(1);
  Vector64 means(running_mean, channels, 0), variances(running_var, channels, 0);
  normalise_all(out, input, weight, bias, means, variances, false, eps);
  images.finish();
}

/// Gradients of one channel. With weight w and normalised elements xhat, the input's gradient is w
/// rstd (g - mean(g) - xhat mean(g xhat)) for batch statistics and w rstd g for fixed ones.
template <class C>
struct ChannelGradient {
  C mean;
  C rstd;
  C weight;
  bool train;
  double of_bias = 0;
  double of_weight = 0;

  void sum(const Runs<C>& g, const Runs<C>& x) {
    WideSum ones, along;
    for (int64_t i = 0; i < x.count; ++i) {
      const C *gs = g[i], *xs = x[i];
      ones.add(x.length, [gs](int64_t k) { return gs[k]; });
      const double centre = static_cast<double>(mean);
      along.add(x.length, [gs, xs, centre](int64_t k) {
        return static_cast<double>(gs[k]) * (static_cast<double>(xs[k]) - centre);
      });
    }
    of_bias = ones.total();
    of_weight = along.total() * static_cast<double>(rstd);
  }
  void write_input(const Runs<C>& dx, const Runs<C>& g, const Runs<C>& x, double count) const {
    const C scale = weight * rstd;
    const C a = train ? static_cast<C>(of_bias / count) : C(0);
    const C b = train ? static_cast<C>(of_weight / count) * rstd : C(0);
    for (int64_t i = 0; i < x.count; ++i) {
      const C *gs = g[i], *xs = x[i];
      C* to = dx[i];
      for (int64_t k = 0; k < x.length; ++k) {
        to[k] = scale * ((gs[k] - a) - (xs[k] - mean) * b);
      }
    }
  }
};

/// The formulas of ChannelGradient for adjacent channels of a channels-last tensor.
template <class T>
void columns_backward(const Out& dx, const In& grad_out, const In& input,
                      const ChannelLayout& layout, const Vector64& means, const Vector64& roots,
                      const Vector64& weights, bool train, bool sums, Vector64& of_weight,
                      Vector64& of_bias) {
  using C = ComputeType<T>;
  using Numbers = typename Columns<T>::Numbers;
  const auto count = static_cast<double>(layout.per_channel());
  for_each_columns<T>(
      layout, Channels<T>::is_buffered(layout), [&](const Columns<T>& columns, int64_t first) {
        const T *x = input.data<T>(), *g = grad_out.data<T>();
        const Numbers mean = columns.numbers(means), rstd = columns.numbers(roots),
                      weight = columns.numbers(weights);
        Numbers scale{}, a{}, b{};
        if (sums) {
          const auto ones =
              columns.sum([&](int64_t at, int64_t) { return convert<double>(g[at]); });
          const auto along = columns.sum([&](int64_t at, int64_t k) {
            return convert<double>(g[at]) * (convert<double>(x[at]) - static_cast<double>(mean[k]));
          });
          for (int64_t k = 0; k < columns.count(); ++k) {
            of_bias[first + k] = ones[k];
            of_weight[first + k] = along[k] * static_cast<double>(rstd[k]);
          }
        }
        if (!dx.defined()) return;
        for (int64_t k = 0; k < columns.count(); ++k) {
          scale[k] = weight[k] * rstd[k];
          a[k] = train ? static_cast<C>(of_bias[first + k] / count) : C(0);
          b[k] = train ? static_cast<C>(of_weight[first + k] / count) * rstd[k] : C(0);
        }
        columns.write(dx.data<T>(), [&](int64_t at, int64_t k) {
          return scale[k] * ((convert<C>(g[at]) - a[k]) - (convert<C>(x[at]) - mean[k]) * b[k]);
        });
      });
}

void native_batch_norm_backward(const Out& given_dx, const Out& dw, const Out& db,
                                const In& given_grad, const In& given_input, const In& weight,
                                const In& running_mean, const In& running_var, const In& save_mean,
                                const In& save_invstd, bool train, double eps, BoolList) {
  Restrided images = images_like(given_input, "native_batch_norm_backward");
  const Out dx = images.write(given_dx);
  const In input = images.read(given_input), grad_out = images.read(given_grad);
  const ChannelLayout layout(input);
  const auto count = static_cast<double>(layout.per_channel());
  const Vector64 weights(weight, layout.channels, 1);
  const Vector64 means(train ? save_mean : running_mean, layout.channels, 0);
  Vector64 roots(train ? save_invstd : running_var, layout.channels, 0);
  if (!train) {
    for (int64_t c = 0; c < layout.channels; ++c) roots[c] = reciprocal_root(roots[c], eps);
  }
  Vector64 of_weight(layout.channels), of_bias(layout.channels);
  const bool sums = train || dw.defined() || db.defined();
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    if (layout.channels_last) {
      return columns_backward<T>(dx, grad_out, input, layout, means, roots, weights, train, sums,
                                 of_weight, of_bias);
    }
    for_each_group<T>(layout, [&](int64_t first, int64_t last, int64_t group) {
      Channels<T> x(layout, input.address), g(layout, grad_out.address), to(layout, dx.address);
      for (int64_t start = first; start < last; start += group) {
        const int64_t end = std::min(last, start + group);
        x.read(start, end);
        g.read(start, end);
        to.start_writing(start, end);
        for (int64_t c = start; c < end; ++c) {
          ChannelGradient<C> gradient{static_cast<C>(means[c]), static_cast<C>(roots[c]),
                                      static_cast<C>(weights[c]), train};
          if (sums) gradient.sum(g[c], x[c]);
          of_weight[c] = gradient.of_weight;
          of_bias[c] = gradient.of_bias;
          if (dx.defined()) gradient.write_input(to[c], g[c], x[c], count);
        }
        to.write_back();
      }
    });
  });
  images.finish();
  if (dw.defined()) of_weight.store(dw);
  if (db.defined()) of_bias.store(db);
}

}  // namespace

LS_KERNEL(CPU, "_fused_batch_norm", fused_batch_norm, Strides::kAny);
LS_KERNEL(CPU, "_native_batch_norm_legit_no_training", batch_norm_no_training, Strides::kAny);
LS_KERNEL(CPU, "native_batch_norm_backward", native_batch_norm_backward, Strides::kAny);

}  // namespace lockstep::cpu
