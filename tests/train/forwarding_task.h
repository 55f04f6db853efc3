#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "train/task.h"

namespace lockstep::train {

/// Forwards every call to another task; tests override single functions.
class ForwardingTask : public Task {
 public:
  explicit ForwardingTask(std::unique_ptr<Task> task) : task_(std::move(task)) {}

  nn::Module& model() override { return task_->model(); }
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    return task_->forward(batch, first, count);
  }
  void train_on(int64_t first, int64_t end) override { task_->train_on(first, end); }
  Tensor losses(int64_t batch, int64_t first, int64_t count) override {
    return task_->losses(batch, first, count);
  }
  std::vector<SampleOrigin> origins(int64_t batch, int64_t count) const override {
    return task_->origins(batch, count);
  }
  double data_wait_ms() const override { return task_->data_wait_ms(); }
  bool holds_out() const override { return task_->holds_out(); }
  std::optional<Evaluation> evaluate(const HeldOutPart& part) override {
    return task_->evaluate(part);
  }
  int64_t tokens_per_sample() const override { return task_->tokens_per_sample(); }
  double flops_per_token() const override { return task_->flops_per_token(); }
  ContentHash data_fingerprint() const override { return task_->data_fingerprint(); }
  ContentHash data_identity() const override { return task_->data_identity(); }
  std::vector<std::string> describe(const std::filesystem::path& folder) const override {
    return task_->describe(folder);
  }
  std::string sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop = {}) override {
    return task_->sample_text(bytes, seed, stop);
  }

 private:
  std::unique_ptr<Task> task_;
};

}  // namespace lockstep::train
