#include "train/language_task.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/ops/view/shape.h"
#include "data/tokenizers/tokenizer.h"
#include "train/generate.h"
#include "train/weights/hugging_face_folder.h"

namespace lockstep::train {

namespace {

std::span<int64_t> elements(const Tensor& tensor) {
  return {tensor.data<int64_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

LanguageTask::LanguageTask(std::unique_ptr<nn::LanguageModel> model,
                           std::unique_ptr<TokenSource> source, Options options)
    : model_(std::move(model)),
      source_(std::move(source)),
      options_(options),
      micro_batches_(model_->device(),
                     {{{options.micro_batch_size, options.length}, DType::kI64},
                      {{options.micro_batch_size, options.length}, DType::kI64}},
                     [this](int64_t batch, int64_t first, std::span<const Tensor> into) {
                       return fill(batch, first, into[0], into[1]);
                     }) {}

const StepBatch& LanguageTask::batch_of(int64_t batch) {
  if (batch == current_batch_) return *current_;
  current_batch_ = -1;  // in case the prefetcher throws
  if (!prefetcher_) prefetcher_.emplace(*source_, options_.length, 0, options_.batch_size, batch);
  current_ = &prefetcher_->step(batch);
  current_batch_ = batch;
  return *current_;
}

int64_t LanguageTask::fill(int64_t batch, int64_t first, const Tensor& input_tensor,
                           const Tensor& target_tensor) {
  const StepBatch& tokens = batch_of(batch);
  const std::span<int64_t> inputs = elements(input_tensor);
  const std::span<int64_t> targets = elements(target_tensor);
  const auto begin = static_cast<size_t>(first * options_.length);
  std::ranges::copy(std::span(tokens.inputs).subspan(begin, inputs.size()), inputs.begin());
  std::ranges::copy(std::span(tokens.targets).subspan(begin, targets.size()), targets.begin());
  return std::ranges::count_if(targets, [](int64_t t) { return t != kIgnoredTarget; });
}

std::vector<int64_t> LanguageTask::documents(int64_t batch, int64_t first, int64_t count) const {
  std::vector<int64_t> sizes;
  for (int64_t i = first; options_.within_documents && i < first + count; ++i) {
    const std::vector<int64_t> of_row = source_->documents(batch, i, options_.length);
    sizes.insert(sizes.end(), of_row.begin(), of_row.end());
  }
  return sizes;
}

SummedLoss LanguageTask::forward(int64_t batch, int64_t first, int64_t count) {
  LS_ASSERT(count == options_.micro_batch_size && first >= 0 &&
            first + count <= options_.batch_size);
  const StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  const Tensor loss = nn::sum_of_losses(*model_, samples.tensors[0], samples.tensors[1],
                                        options_.loss, documents(batch, first, count));
  prefetch_after(batch, first, count);
  return {loss, samples.targets};
}

void LanguageTask::prefetch_after(int64_t batch, int64_t first, int64_t count) {
  // Another rank's micro-batch is asked for by itself.
  if (first >= options_.first_sample && first + count <= options_.end_sample) {
    micro_batches_.prefetch_after(batch, first, count, options_.first_sample, options_.end_sample);
  }
}

std::string LanguageTask::why_not_repeatable() const {
  return options_.within_documents ? "each batch has documents of other sizes" : "";
}

Task::Samples LanguageTask::samples(int64_t batch, int64_t first, int64_t count) {
  StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  prefetch_after(batch, first, count);
  return {std::move(samples.tensors), samples.targets};
}

Tensor LanguageTask::sum_of_losses(TensorList samples) {
  return nn::sum_of_losses(*model_, samples[0], samples[1], options_.loss);
}

Tensor LanguageTask::losses(int64_t batch, int64_t first, int64_t count) {
  const NoGradGuard no_grad;
  const StagedBatches::MicroBatch samples = micro_batches_.get(batch, first);
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < count; ++i) {
    const auto row = [i](const Tensor& of_all) { return of_all.narrow(0, i, 1); };
    losses.push_back(nn::sum_of_losses(*model_, row(samples.tensors[0]), row(samples.tensors[1]),
                                       {}, documents(batch, first + i, 1)));
  }
  return stack(losses).to(DType::kF64);
}

bool LanguageTask::holds_out() const { return source_->validation_windows(options_.length) > 0; }

std::optional<Evaluation> LanguageTask::evaluate(const HeldOutPart& part) {
  const int64_t rows =
      options_.evaluation_size > 0 ? options_.evaluation_size : options_.micro_batch_size;
  return train::evaluate(*model_, *source_,
                         {.length = options_.length,
                          .rows = rows,
                          .within_documents = options_.within_documents,
                          .part = part});
}

double LanguageTask::flops_per_token() const {
  return nn::training_flops_per_token(*model_, options_.length);
}

std::vector<std::string> LanguageTask::describe(const std::filesystem::path& folder) const {
  const Tokenizer* tokenizer = source_->tokenizer();
  std::vector<std::string> names;
  if (tokenizer != nullptr) names = tokenizer->save(folder);
  write_text(folder / "config.json", hugging_face_config(*model_, tokenizer));
  names.emplace_back("config.json");
  return names;
}

std::string LanguageTask::sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop) {
  const Tokenizer* tokenizer = source_->tokenizer();
  if (bytes == 0 || tokenizer == nullptr) return "";
  std::vector<uint32_t> prompt = source_->sample_start(seed);
  std::string text = decode(*tokenizer, prompt);
  if (prompt.empty()) prompt = encode(*tokenizer, "\n");
  const double size = std::max(1.0, source_->held_out_bytes_per_token());
  const auto tokens = static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / size));
  generate(*model_, {prompt.begin(), prompt.end()},
           {.max_new_tokens = tokens,
            .temperature = 0.8,
            .top_k = 0,
            .seed = seed,
            .vocabulary = tokenizer->vocabulary(),
            .end = tokenizer->end_of_text(),
            .stop = stop},
           [&](int64_t token) { tokenizer->decode(static_cast<uint32_t>(token), text); });
  return text;
}

}  // namespace lockstep::train
