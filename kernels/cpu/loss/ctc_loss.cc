// Connectionist temporal classification (Graves et al. 2006, section 4), in f64. A target of length
// n has 2 n + 1 places: its classes with a blank before, between and after them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// log(e^a + e^b).
double log_sum(double a, double b) {
  const double larger = std::max(a, b), smaller = std::min(a, b);
  return larger == kNever ? kNever : larger + std::log1p(std::exp(smaller - larger));
}

/// The classes of each sequence's target.
std::vector<std::vector<int64_t>> read_targets(const In& targets, IntList lengths,
                                               int64_t classes) {
  std::vector<std::vector<int64_t>> all;
  int64_t start = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (targets.rank == 2) start = static_cast<int64_t>(i) * targets.size(1);
    std::vector<int64_t>& target = all.emplace_back();
    for (int64_t k = 0; k < lengths[i]; ++k) {
      const int64_t c = targets.dtype == DType::kI64 ? targets.data<int64_t>()[start + k]
                                                     : targets.data<int32_t>()[start + k];
      LS_CHECK(c >= 0 && c < classes, IndexError,
               "[ctc_loss] target {} of sequence {} is no class: expected a number in [0, {}), got "
               "{}.",
               k, i, classes, c);
      target.push_back(c);
    }
    start += lengths[i];
  }
  return all;
}

/// One sequence with its target.
struct Sequence {
  const std::vector<double>& log_probs;  ///< [steps, classes]
  const std::vector<int64_t>& target;
  int64_t steps, classes, blank;

  int64_t places() const { return 2 * static_cast<int64_t>(target.size()) + 1; }
  int64_t class_at(int64_t place) const {
    return place % 2 == 0 ? blank : target[static_cast<size_t>(place / 2)];
  }
  double log_prob(int64_t step, int64_t place) const {
    return log_probs[static_cast<size_t>(step * classes + class_at(place))];
  }
  /// Whether a path may go from place - 2 to this place, leaving out the blank between them.
  bool may_skip(int64_t place) const {
    return place >= 2 && place % 2 == 1 && class_at(place) != class_at(place - 2);
  }
};

/// alpha [steps, places]: the log-probability of being at a place after a step.
std::vector<double> forward_pass(const Sequence& s) {
  const int64_t places = s.places();
  std::vector<double> alpha(static_cast<size_t>(s.steps * places), kNever);
  for (int64_t t = 0; t < s.steps; ++t) {
    double* now = alpha.data() + t * places;
    for (int64_t p = 0; p < places; ++p) {
      double before = p < 2 ? 0 : kNever;
      if (t > 0) {
        const double* last = now - places;
        before = last[p];
        if (p >= 1) before = log_sum(before, last[p - 1]);
        if (s.may_skip(p)) before = log_sum(before, last[p - 2]);
      }
      now[p] = before == kNever ? kNever : before + s.log_prob(t, p);
    }
  }
  return alpha;
}

/// beta [steps, places]: the log-probability of spelling the rest from a place at a step on.
std::vector<double> backward_pass(const Sequence& s) {
  const int64_t places = s.places();
  std::vector<double> beta(static_cast<size_t>(s.steps * places), kNever);
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    double* now = beta.data() + t * places;
    for (int64_t p = 0; p < places; ++p) {
      double after = p + 2 >= places ? 0 : kNever;
      if (t + 1 < s.steps) {
        const double* next = now + places;
        after = next[p];
        if (p + 1 < places) after = log_sum(after, next[p + 1]);
        if (p + 2 < places && s.may_skip(p + 2)) after = log_sum(after, next[p + 2]);
      }
      now[p] = after == kNever ? kNever : after + s.log_prob(t, p);
    }
  }
  return beta;
}

double loss_of(const Sequence& s, const std::vector<double>& alpha) {
  if (s.steps == 0) return s.target.empty() ? 0 : -kNever;
  const double* last = alpha.data() + (s.steps - 1) * s.places();
  const int64_t end = s.places() - 1;
  return -(end > 0 ? log_sum(last[end], last[end - 1]) : last[end]);
}

/// Calls body(index, sequence) for each sequence of a batch [steps, batch, classes].
template <class Body>
void for_each_sequence(const In& log_probs, const In& targets, IntList input_lengths,
                       IntList target_lengths, int64_t blank, const Body& body) {
  const int64_t batch = log_probs.size(1), classes = log_probs.size(2);
  const auto all_targets = read_targets(targets, target_lengths, classes);
  parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> own;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t steps = input_lengths[static_cast<size_t>(i)];
      own.resize(static_cast<size_t>(steps * classes));
      with_floating_type(log_probs.dtype, [&]<class T>() {
        for (int64_t t = 0; t < steps; ++t) {
          const T* from = log_probs.data<T>() + (t * batch + i) * classes;
          for (int64_t c = 0; c < classes; ++c) {
            own[static_cast<size_t>(t * classes + c)] = convert<double>(from[c]);
          }
        }
      });
      body(i, Sequence{own, all_targets[static_cast<size_t>(i)], steps, classes, blank});
    }
  });
}

void ctc_loss(const Out& losses, const Out& log_alpha, const In& log_probs, const In& targets,
              IntList input_lengths, IntList target_lengths, int64_t blank, bool) {
  const int64_t steps = log_alpha.size(1), width = log_alpha.size(2);
  const auto solve = [&](int64_t i, const Sequence& s) {
    const std::vector<double> alpha = forward_pass(s);
    with_floating_type(losses.dtype, [&]<class T>() {
      losses.data<T>()[i] = convert<T>(loss_of(s, alpha));
      T* to = log_alpha.data<T>() + i * steps * width;
      std::fill(to, to + steps * width, convert<T>(kNever));
      for (int64_t t = 0; t < s.steps; ++t) {
        for (int64_t p = 0; p < s.places(); ++p) {
          to[t * width + p] = convert<T>(alpha[static_cast<size_t>(t * s.places() + p)]);
        }
      }
    });
  };
  for_each_sequence(log_probs, targets, input_lengths, target_lengths, blank, solve);
}

/// occupied [classes]: the log-probability of each class at a step, together with the target.
void add_places(const Sequence& s, int64_t step, const std::vector<double>& alpha,
                const std::vector<double>& beta, std::vector<double>& occupied) {
  std::fill(occupied.begin(), occupied.end(), kNever);
  for (int64_t p = 0; p < s.places(); ++p) {
    const size_t at = static_cast<size_t>(step * s.places() + p);
    double& sum = occupied[static_cast<size_t>(s.class_at(p))];
    // Both have the probability of this step, so one of them is taken out.
    if (alpha[at] != kNever && beta[at] != kNever) {
      sum = log_sum(sum, alpha[at] + beta[at] - s.log_prob(step, p));
    }
  }
}

void ctc_loss_backward(const Out& result, const In& grad, const In& log_probs, const In& targets,
                       IntList input_lengths, IntList target_lengths, const In&, const In&,
                       int64_t blank, bool zero_infinity) {
  const int64_t steps = result.size(0), batch = result.size(1), classes = result.size(2);
  const auto solve = [&](int64_t i, const Sequence& s) {
    // Again in f64: log_alpha is rounded.
    const std::vector<double> alpha = forward_pass(s), beta = backward_pass(s);
    const double loss = loss_of(s, alpha);
    const bool ignored = zero_infinity && loss == -kNever;
    std::vector<double> occupied(static_cast<size_t>(classes));
    with_floating_type(result.dtype, [&]<class T>() {
      const double factor = convert<double>(grad.data<T>()[i]);
      for (int64_t t = 0; t < steps; ++t) {
        T* to = result.data<T>() + (t * batch + i) * classes;
        if (t >= s.steps || ignored) {
          std::fill(to, to + classes, convert<T>(0.0));
          continue;
        }
        add_places(s, t, alpha, beta, occupied);
        for (int64_t c = 0; c < classes; ++c) {
          const double own = s.log_probs[static_cast<size_t>(t * classes + c)];
          const double given = std::exp(occupied[static_cast<size_t>(c)] + loss);
          to[c] = convert<T>((std::exp(own) - given) * factor);
        }
      }
    });
  };
  for_each_sequence(log_probs, targets, input_lengths, target_lengths, blank, solve);
}

}  // namespace

LS_KERNEL(CPU, "_ctc_loss", ctc_loss, Strides::kContiguous);
LS_KERNEL(CPU, "_ctc_loss_backward", ctc_loss_backward, Strides::kContiguous);

}  // namespace lockstep::cpu
