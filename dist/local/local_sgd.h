#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/ddp/reducer.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

struct LocalSgdOptions {
  int64_t inner_steps = 100;   ///< between two averages of a parameter; at least 1
  int64_t fragments = 1;       ///< parts that are averaged in turn; 1 to inner_steps
  int64_t delay_steps = 0;     ///< steps until an average is used; less than inner_steps
  int bits = 8;                ///< of a number on the way: 4, 8 or 32
  double learning_rate = 0.7;  ///< of the outer step; above 0
  double momentum = 0.9;       ///< of the outer step; 0 to below 1
};

/// Local steps with averages from time to time (DiLoCo, Douillard et al. 2023; in fragments and
/// behind compute as Streaming DiLoCo, Douillard et al. 2025). Every rank updates parameters of its
/// own; of each parameter the ranks also share a global value g and a momentum m, with which every
/// `inner_steps` steps
///
///     d = p - g                 on each rank
///     a = mean over ranks of d
///     m = momentum * m + a
///     g = g + learning_rate * (a + momentum * m)
///     p = g                     with delay_steps: g + (p - p when d was taken)
///
/// With 8 and 4 bits d is sent as codes (dist/local/block_codes.h) to the rank that owns the part,
/// which adds up what came, and sends codes of the mean to all; what the codes lose of d and of a
/// is kept and added to the next (error feedback).
///
/// Fragment f of F is averaged after steps n with n + f * inner_steps / F divisible by inner_steps,
/// so that what is sent depends on the number of the step alone. All ranks make the same calls; the
/// result does not depend on when messages arrive. Global values are equal on all ranks.
///
/// Memory beside the parameters: 2 times their bytes, 1 more with codes and 2 more with a delay;
/// during an average 1 to 2 times a fragment's. f32 parameters, dense, on one device. Not
/// thread-safe.
class LocalSgd {
 public:
  /// The global values begin as the parameters are: call `begin_anew` when those get others.
  /// `group` must outlive this; communicates through a subgroup of all its ranks. Throws DistError
  /// for options out of range, DTypeError for parameters that are not f32. Collective.
  LocalSgd(std::vector<NamedTensor> parameters, ProcessGroup& group,
           const LocalSgdOptions& options);
  ~LocalSgd();
  LocalSgd(const LocalSgd&) = delete;
  LocalSgd& operator=(const LocalSgd&) = delete;

  /// Call after the update of every step; `steps`: how many have been done, from 1. Collective.
  void after_update(int64_t steps);
  /// After the last step: uses what is on the way, and sets parameters and global values to the
  /// mean over the ranks of what the parameters are now. Collective.
  void finish(int64_t steps);
  /// Takes the parameters, which must be equal on all ranks, as global values, and forgets the
  /// rest.
  void begin_anew();

  /// Exchanges the values of parameters and global values: between two calls of this the model
  /// computes with the global ones.
  void exchange();
  /// Global value of a parameter.
  const Tensor& global(size_t parameter) const { return globals_[parameter]; }

  /// Tensors of the state besides parameters and global values, as checkpoints hold them: each like
  /// a parameter.
  struct State {
    enum class Of {
      kAll,   ///< equal on all ranks
      kRank,  ///< each rank has its own
      kPart   ///< each rank has the elements of `part_of`, flat
    };
    std::string name;
    Of of = Of::kAll;
    std::vector<Tensor> tensors;  ///< by parameter
  };
  /// Names and owners; the same on all ranks.
  std::vector<State> state() const;
  /// Elements `first` to `end` - 1 of a flat parameter; none if they are equal.
  struct Part {
    int64_t first = 0;
    int64_t end = 0;
    int64_t offset = 0;  ///< of element `first` among all that the rank owns of the fragment
  };
  /// What a rank owns of a parameter.
  Part part_of(size_t parameter, int rank) const;
  /// Waits until nothing is on the way, so that `state` says all. Collective.
  void settle();
  /// Call when state, parameters and global values are those that `settle` left after `steps`.
  void restore(int64_t steps);

  /// Seconds for which `after_update` and `finish` have waited for messages since the last call; of
  /// a device with streams only what the host waited.
  double take_wait();
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// Bytes of the state, global values included.
  int64_t state_bytes() const;

 private:
  /// How far the average of a fragment is.
  enum class Progress { kNone, kSent, kGathered, kThere };
  /// Consecutive parameters that are averaged together. Tensors are arenas, in which each parameter
  /// begins with a coded block, and of which each rank owns one of equal parts; but for messages.
  struct Fragment {
    size_t number = 0;  ///< from 1
    size_t first = 0;   ///< parameters `first` to `end` - 1
    size_t end = 0;
    std::vector<int64_t> offsets;  ///< of each in the arena
    int64_t owned = 0;             ///< elements of the arena that a rank owns
    Tensor global;
    Tensor momentum;
    Tensor difference;  ///< with a delay always, else during an average
    Tensor mean;        ///< likewise
    Tensor error;       ///< with codes: what they lost of `difference`
    Tensor mean_error;  ///< with codes: what they lost of this rank's part of `mean`
    Progress progress = Progress::kNone;
    Tensor received;  ///< codes on the way
    Work work;
  };
  std::vector<int64_t> elements_of(size_t first, size_t end) const;
  Fragment make_fragment(size_t first, size_t end) const;
  int64_t elements(const Fragment& fragment) const { return fragment.owned * group_->size(); }
  std::vector<Fragment> divided() const;
  bool has_codes() const { return options_.bits < 32; }
  /// Steps since the average of a fragment last began.
  int64_t since(size_t fragment, int64_t steps) const;
  /// The part of an arena that is parameter `number`.
  Tensor part(const Fragment& fragment, const Tensor& arena, size_t number) const;
  void send(Fragment& fragment);
  void gather(Fragment& fragment);
  void arrive(Fragment& fragment);
  void use(Fragment& fragment, bool is_last);
  void wait(Work& work);
  std::vector<Tensor> by_parameter(Tensor Fragment::*arena) const;

  std::vector<NamedTensor> parameters_;
  std::unique_ptr<ProcessGroup> group_;
  LocalSgdOptions options_;
  std::vector<Fragment> fragments_;
  std::vector<Tensor> globals_;  ///< by parameter, over the fragments' arenas
  double waited_ = 0;
};

}  // namespace lockstep::dist
