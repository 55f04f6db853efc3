#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cuda/graph.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// One rank's steps as two CUDA graphs (compile.cuda_graphs): the forward and backward passes, and
/// the update. They are captured once some steps have run without. Replays have the bits of what
/// was captured, random numbers included, for the samples and numbers that were put where the
/// graphs read them. Weights, their casts, gradients and optimizer state are used where they are.
///
/// The ranks of a group replay passes together: in each step each has a vote on the next one, and
/// all learn whether the votes are unanimous. A step is one of
///
///     passes, ran(...), with vote() and hear(...) at any time
///     put(...) for each micro-batch, capture_passes(...), vote(), hear(...), then replay_passes()
///     put(...) for each micro-batch, vote(), replay_passes(), hear(...)
///
/// and then, as each rank likes, the update or send(...), replay_update(). Not thread-safe.
class CapturedStep {
 public:
  /// `refusal`: why the passes of these runs cannot be captured; empty if they may be.
  /// `update_refusal`: the same of updates. `weights` are what updates change, all of a model or
  /// this rank's parts, `buffers` what passes change; both must stay those that they are.
  CapturedStep(Device device, std::vector<Tensor> weights, std::vector<Tensor> buffers,
               std::string refusal, std::string update_refusal);
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  // The passes.

  /// Whether the ranks agreed to replay the next ones, and nothing keeps this one from it.
  bool is_due();
  bool has_passes() const { return passes_ != nullptr; }
  /// Copies the samples of micro-batch `number` of the step to where the graph reads them; before
  /// the capture it decides where that is.
  void put(size_t number, const std::vector<Tensor>& samples);
  /// The samples of a micro-batch, where the graph reads them.
  const std::vector<Tensor>& samples(size_t number) const { return samples_[number]; }
  /// Captures `passes`, which read these samples and return the losses of the step. Where they
  /// cannot be captured there is no graph afterwards, and a refusal.
  void capture_passes(const std::function<Tensor()>& passes);
  /// Queues the graph on the current stream. Returns the losses, valid until the next replay.
  Tensor replay_passes();

  /// Tells of a step whose passes ran one by one, and whether those of others would be the same
  /// from now on as far as the caller knows.
  void ran(bool settled);
  /// This rank's vote for replaying the passes of the next step.
  bool vote() const;
  /// Tells whether all ranks voted for it.
  void hear(bool unanimous) { is_agreed_ = unanimous; }
  /// Whether the last votes were unanimous.
  bool is_agreed() const { return is_agreed_; }

  // The update that follows passes which were replayed.

  bool has_update() const { return update_ != nullptr; }
  bool may_have_update() const { return update_refusal_.empty(); }
  /// Queues the copy of so many numbers, as many each time, to where the graph reads them.
  void send(std::span<const double> numbers);
  /// Where the device has one of them: f64, 0-d.
  Tensor number(size_t i) const;
  /// Captures `update`. Where it cannot be captured there is no graph afterwards, and a refusal.
  void capture_update(const std::function<void()>& update);
  void replay_update();

  /// Forgets the graphs: the passes are others from now on.
  void drop();
  /// For ever, and says why.
  void refuse(std::string why);
  /// Why there are no graphs, and never will be; else empty.
  const std::string& refusal() const { return refusal_; }
  /// Why there is none of the update.
  const std::string& update_refusal() const { return update_refusal_; }

 private:
  /// Steps that run without a graph first: they choose plans and buckets, and make casts.
  static constexpr int kWarmUps = 3;

  std::vector<const void*> places() const;
  /// The graph of `work`, or null and why there is none.
  std::unique_ptr<CudaGraph> captured(const std::function<void()>& work, std::string& refusal);

  Device device_;
  std::vector<Tensor> weights_, buffers_;
  std::string refusal_;
  std::string update_refusal_;
  int warm_ups_ = 0;
  bool settled_ = false;
  bool is_agreed_ = false;
  std::vector<const void*> places_;  ///< of weights, their casts and buffers, in the capture
  std::vector<std::vector<Tensor>> samples_;
  Tensor numbers_;
  std::unique_ptr<CudaGraph> passes_;
  std::unique_ptr<CudaGraph> update_;
  Tensor losses_;
};

}  // namespace lockstep::train
