#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth a thread

/// A tensor [batch, channels, places...].
struct Layout {
  int64_t batch;
  int64_t channels;
  int64_t places;

  explicit Layout(const TensorArg& tensor)
      : batch(tensor.size(0)),
        channels(tensor.size(1)),
        places(count_elements(tensor.sizes().subspan(2))) {}
  int64_t per_channel() const { return batch * places; }
};

/// A sum in f64, in an order that depends on the lengths of the runs only.
class WideSum {
 public:
  template <class Term>
  void add(int64_t n, Term term) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lanes_[k] += static_cast<double>(term(i + k));
    }
    for (int64_t k = 0; i + k < n; ++k) lanes_[k] += static_cast<double>(term(i + k));
  }
  double total() const {
    double lanes[kLanes];
    std::copy_n(lanes_, kLanes, lanes);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    }
    return lanes[0];
  }

 private:
  static constexpr int64_t kLanes = 16;
  alignas(64) double lanes_[kLanes] = {};
};

/// The elements of one channel: `count` runs of `length`, `stride` apart.
template <class E>
struct Runs {
  E* data;
  int64_t count;
  int64_t length;
  int64_t stride;

  E* operator[](int64_t i) const { return data + i * stride; }
};

/// Gives the elements of channel after channel in the type to compute in: where they lie, or copied
/// into a buffer when they are halves or so few side by side that loops over them are slow. What is
/// written to a buffer is stored with `write_back`.
template <class T>
class Channels {
 public:
  using C = ComputeType<T>;

  /// `address` is null when there is nothing to write.
  Channels(const Layout& layout, void* address) : layout_(layout), data_(static_cast<T*>(address)) {
    if (address == nullptr || !is_buffered(layout)) return;
    buffer_ = std::make_unique_for_overwrite<C[]>(
        static_cast<size_t>(group(layout) * layout.per_channel()));
  }

  static bool is_buffered(const Layout& layout) {
    constexpr int64_t kFew = 8;
    return !std::is_same_v<T, C> || layout.places < kFew;
  }
  /// Channels that are copied together, so that neighbours share the cache lines they are read by.
  static int64_t group(const Layout& layout) {
    return is_buffered(layout) && layout.places < 16 ? 16 : 1;
  }

  /// Takes channels [first, last), at most a group.
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

  Layout layout_;
  T* data_;
  std::unique_ptr<C[]> buffer_;
  int64_t first_ = 0;
  int64_t last_ = 0;
};

/// Calls body(first, last) for groups of channels, in parallel. `make` makes what each thread
/// needs.
template <class T, class Body>
void for_each_group(const Layout& layout, Body body) {
  const int64_t group = Channels<T>::group(layout);
  const int64_t work = std::max<int64_t>(1, group * layout.per_channel());
  parallel_for(0, (layout.channels + group - 1) / group, std::max<int64_t>(1, kGrain / work),
               [&](int64_t first, int64_t last) {
                 body(first * group, std::min(last * group, layout.channels), group);
               });
}

/// A vector of one number per channel, of any floating dtype.
class Vector64 {
 public:
  explicit Vector64(int64_t channels) : values_(static_cast<size_t>(channels)) {}
  /// Of a tensor, or of `otherwise` where there is none.
  Vector64(const In& in, int64_t channels, double otherwise)
      : values_(static_cast<size_t>(channels), otherwise) {
    if (!in.defined()) return;
    with_floating_type(in.dtype, [&]<class T>() {
      for (int64_t i = 0; i < channels; ++i) {
        values_[static_cast<size_t>(i)] = convert<double>(in.data<T>()[i]);
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

/// The sum over a channel of term(element).
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

/// Mean and variance of one channel, which is not empty.
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

/// Normalises by `means` and `variances`, which are first found when `find` says so.
void normalise_all(const Out& out, const In& input, const In& weight, const In& bias,
                   Vector64& means, Vector64& variances, bool find, double eps) {
  const Layout layout(input);
  const auto count = static_cast<double>(layout.per_channel());
  const Vector64 weights(weight, layout.channels, 1), biases(bias, layout.channels, 0);
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
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

void fused_batch_norm(const Out& out, const Out& save_mean, const Out& save_invstd,
                      const Out& new_mean, const Out& new_var, const In& input, const In& weight,
                      const In& bias, const In& running_mean, const In& running_var,
                      double momentum, double eps) {
  const Layout layout(input);
  Vector64 means(layout.channels), variances(layout.channels), roots(layout.channels);
  normalise_all(out, input, weight, bias, means, variances, true, eps);
  for (int64_t c = 0; c < layout.channels; ++c) roots[c] = reciprocal_root(variances[c], eps);
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

void batch_norm_no_training(const Out& out, const Out&, const Out&, const In& input,
                            const In& weight, const In& bias, const In& running_mean,
                            const In& running_var, double, double eps) {
  const int64_t channels = input.size(1);
  Vector64 means(running_mean, channels, 0), variances(running_var, channels, 0);
  normalise_all(out, input, weight, bias, means, variances, false, eps);
}

/// One channel's gradients. With w the weight and xhat the normalised elements, the input's is
/// w rstd (g - mean(g) - xhat mean(g xhat)) for the batch's statistics, w rstd g for fixed ones.
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

void native_batch_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, const In& weight, const In& running_mean,
                                const In& running_var, const In& save_mean, const In& save_invstd,
                                bool train, double eps, BoolList) {
  const Layout layout(input);
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
  if (dw.defined()) of_weight.store(dw);
  if (db.defined()) of_bias.store(db);
}

}  // namespace

LS_KERNEL(CPU, "_fused_batch_norm", fused_batch_norm, Strides::kContiguous);
LS_KERNEL(CPU, "_native_batch_norm_legit_no_training", batch_norm_no_training,
          Strides::kContiguous);
LS_KERNEL(CPU, "native_batch_norm_backward", native_batch_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cpu
