#include "train/build.h"

#include <algorithm>
#include <optional>

#include "configs/architectures.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/tensor/generator.h"
#include "data/table_data.h"
#include "nn/initial_values.h"
#include "train/architectures.h"
#include "train/build_data.h"
#include "train/classifier_task.h"
#include "train/language_task.h"
#include "train/optimizer/adafactor.h"
#include "train/optimizer/muon.h"
#include "train/trained_parts.h"

namespace lockstep::train {

namespace {

/// Sets the generator to the place from which new weights are drawn. It is a step that is never
/// trained, so they share no random numbers with dropout.
void seed_weights(const config::RunConfig& config) {
  default_generator().manual_seed(config.seed());
  default_generator().set_position(Generator::kMaxSteps - 1, 0);
}

std::unique_ptr<SampleSource> build_samples(const config::RunConfig& config,
                                            const nn::Classifier& model) {
  if (!config.data().has_table()) {
    return std::make_unique<RandomSamples>(nn::input_size(model), model.classes(), config.seed());
  }
  const config::TableData& from = config.data().table();
  TableDataOptions options;
  options.scale = from.scale();
  options.held_out_rows = from.held_out_rows();
  options.order = config.data().order() == config::DataConfig::SHUFFLED ? WindowOrder::kShuffled
                                                                        : WindowOrder::kRandom;
  options.seed = config.seed();
  options.samples_per_step = config.train().batch_size();
  options.features = nn::input_size(model);
  options.classes = model.classes();
  return std::make_unique<TableData>(from.path(), options);
}

/// Whether linear_gelu gives the gelu of what it stores, as kernels of the cpu do.
bool computes_gelu_alone(DeviceType type) {
  return type == DeviceType::kCPU || type == DeviceType::kHost;
}

nn::RecomputeOptions recompute_of(const config::RunConfig& config) {
  const config::ModelConfig& model = config.model();
  switch (model.recompute()) {
    case config::ModelConfig::CHEAP:
      return {.what = nn::Recompute::kCheap,
              .gelu = computes_gelu_alone(parse_device(config.device()).type)};
    case config::ModelConfig::BLOCK:
      return {.what = nn::Recompute::kBlock,
              .blocks = std::max<int64_t>(1, model.checkpoint_every())};
    default:
      return {};
  }
}

AdamWOptions adamw_options(const config::AdamW& from, double weight_decay) {
  return {from.beta1(), from.beta2(), from.epsilon(), weight_decay};
}

/// Throws ConfigError for a model of which the config's optimizer cannot train what is to be
/// trained.
void check_update_rule(const nn::Module& model, const config::RunConfig& config) {
  check_parameter_groups(model, config.optimizer());
  if (!config.optimizer().has_muon()) return;
  LS_CHECK(
      std::ranges::any_of(model.named_parameters(),
                          [&](const nn::NamedParameter& each) {
                            return each.tensor.requires_grad() && each.tensor.dim() >= 2 &&
                                   is_hidden_layer(config.model(), each.name);
                          }),
      ConfigError,
      "[optimizer.muon] the model has no hidden matrices to orthogonalise: expected a layer "
      "between the first and the last. Choose optimizer.adamw, or a model with hidden layers.");
}

std::unique_ptr<Optimizer> build_muon(const config::RunConfig& config,
                                      const std::vector<nn::NamedParameter>& parameters) {
  const config::OptimizerConfig& from = config.optimizer();
  const auto is_hidden = [&](std::string_view name) {
    return is_hidden_layer(config.model(), name);
  };
  MuonOptions options;
  options.learning_rate_ratio = from.muon().learning_rate() / from.learning_rate();
  options.momentum = from.muon().momentum();
  options.nesterov = from.muon().nesterov();
  options.iterations = from.muon().iterations();
  options.weight_decay = from.weight_decay();
  options.products = config.precision() == config::BF16_MIXED ? DType::kBF16 : DType::kF32;
  options.others = adamw_options(from.muon().adamw(), from.weight_decay());
  return std::make_unique<Muon>(parameters, is_hidden, options);
}

}  // namespace

bool is_classifier(const config::RunConfig& config) {
  return !config::architecture_of(config.model()).is_language_model();
}

std::unique_ptr<nn::LanguageModel> build_model(const config::RunConfig& config) {
  LS_ASSERT(!is_classifier(config));
  seed_weights(config);
  const config::ModelConfig& model = config.model();
  std::unique_ptr<nn::LanguageModel> built = make_language_model(model);
  built->set_recompute(recompute_of(config));
  choose_trained_parts(*built, model);
  check_update_rule(*built, config);
  load_initial_weights(*built, model);
  return built;
}

std::unique_ptr<nn::Classifier> build_classifier(const config::RunConfig& config) {
  LS_ASSERT(is_classifier(config));
  seed_weights(config);
  const config::ModelConfig& model = config.model();
  std::unique_ptr<nn::Classifier> built = make_classifier(model);
  built->set_recompute(recompute_of(config));
  choose_trained_parts(*built, model);
  check_update_rule(*built, config);
  load_initial_weights(*built, model);
  return built;
}

std::unique_ptr<TokenSource> build_source(const config::RunConfig& config) {
  const config::Architecture& architecture = config::architecture_of(config.model());
  LS_ASSERT(architecture.is_language_model());
  return build_data(config.data(), {.vocabulary = architecture.vocabulary(config.model()),
                                    .seed = config.seed(),
                                    .sequences_per_step = config.train().batch_size(),
                                    .length = sequence_length(config)});
}

Device device_of(const config::RunConfig& config) {
  try {
    const Device device = parse_device(config.device());
    // Querying its memory throws DeviceError, with the reason, if the device is missing. A backend
    // of a plug-in may have no runtime: its calls are then done when they return.
    if (DeviceRuntime* const runtime = find_runtime(device)) (void)runtime->memory(device.index);
    return device;
  } catch (const DeviceError& error) {
    throw ConfigError(std::string("[device] ") + error.what());
  }
}

std::unique_ptr<Task> build_task(const config::RunConfig& config) {
  return build_task(config, share_of_step(config.train(), 0, 1));
}

std::unique_ptr<Task> build_task(const config::RunConfig& config, const StepShare& share) {
  const DefaultDeviceGuard on_device(device_of(config));
  std::optional<nn::DeferValuesGuard> later;
  const bool is_alone = share.micro_batches * share.micro_batch_size == config.train().batch_size();
  if (!is_alone && config.parallel().strategy() != config::ParallelConfig::DDP &&
      config.model().weights().empty()) {
    later.emplace();
  }
  if (is_classifier(config)) {
    std::unique_ptr<nn::Classifier> model = build_classifier(config);
    std::unique_ptr<SampleSource> samples = build_samples(config, *model);
    return std::make_unique<ClassifierTask>(std::move(model), std::move(samples),
                                            share.micro_batch_size,
                                            config.train().micro_batch_size());
  }
  return std::make_unique<LanguageTask>(
      build_model(config), build_source(config),
      LanguageTask::Options{
          .length = sequence_length(config),
          .batch_size = config.train().batch_size(),
          .micro_batch_size = share.micro_batch_size,
          .evaluation_size = config.train().micro_batch_size(),
          .first_sample = share.first_sample,
          .end_sample = share.end_sample(),
          .loss = loss_options(config),
          .within_documents = config.data().attention() == config::DataConfig::WITHIN_DOCUMENTS});
}

namespace {

std::unique_ptr<Optimizer> build_rule(const config::RunConfig& config,
                                      const std::vector<nn::NamedParameter>& parameters) {
  const config::OptimizerConfig& from = config.optimizer();
  if (from.has_muon()) return build_muon(config, parameters);
  if (from.has_sgd()) {
    return std::make_unique<Sgd>(
        parameters, SgdOptions{from.sgd().momentum(), from.sgd().nesterov(), from.weight_decay()});
  }
  if (from.has_lion()) {
    return std::make_unique<Lion>(
        parameters, LionOptions{from.lion().beta1(), from.lion().beta2(), from.weight_decay()});
  }
  if (from.has_adafactor()) {
    return std::make_unique<Adafactor>(parameters,
                                       AdafactorRule{.beta2_decay = from.adafactor().beta2_decay(),
                                                     .epsilon2 = from.adafactor().epsilon(),
                                                     .clip = from.adafactor().clip(),
                                                     .weight_decay = from.weight_decay()});
  }
  return std::make_unique<AdamW>(parameters, adamw_options(from.adamw(), from.weight_decay()));
}

}  // namespace

std::unique_ptr<Optimizer> build_optimizer(const config::RunConfig& config,
                                           const std::vector<nn::NamedParameter>& parameters) {
  std::unique_ptr<Optimizer> optimizer = build_rule(config, parameters);
  // A base model, of width 1, is updated as one without muP.
  const bool is_scaled = mup_of(config.model()).width != 1;
  if (!config.optimizer().groups().empty() || is_scaled) {
    std::vector<std::string> names;
    for (const nn::NamedParameter& each : parameters) names.push_back(each.name);
    ParameterGroups chosen = parameter_groups(config.optimizer(), names);
    if (is_scaled) chosen = with_mup(std::move(chosen), config, parameters);
    optimizer->choose_groups(std::move(chosen.groups), std::move(chosen.group_of));
  }
  const double decay = config.train().weight_average().decay();
  if (decay > 0) optimizer->keep_averages(parameters, decay);
  return optimizer;
}

LearningRateSchedule build_schedule(const config::RunConfig& config) {
  const config::ScheduleConfig& from = config.schedule();
  LearningRateSchedule schedule;
  using Kind = LearningRateSchedule::Kind;
  if (from.kind() == config::ScheduleConfig::CONSTANT) schedule.kind = Kind::kConstant;
  if (from.kind() == config::ScheduleConfig::LINEAR) schedule.kind = Kind::kLinear;
  if (from.kind() == config::ScheduleConfig::WSD) schedule.kind = Kind::kWsd;
  if (from.kind() == config::ScheduleConfig::INVERSE_SQRT) schedule.kind = Kind::kInverseSqrt;
  schedule.peak = config.optimizer().learning_rate();
  schedule.warmup_steps = from.warmup_steps();
  schedule.decay_steps = from.decay_steps();
  schedule.cooldown_steps = from.cooldown_steps();
  schedule.minimum_ratio = from.min_learning_rate_ratio();
  return schedule;
}

nn::LossOptions loss_options(const config::RunConfig& config) {
  const config::LossConfig& loss = config.train().loss();
  return {.label_smoothing = loss.label_smoothing(), .z_loss = loss.z_loss()};
}

int64_t sequence_length(const config::RunConfig& config) {
  const config::Architecture& architecture = config::architecture_of(config.model());
  LS_ASSERT(architecture.is_language_model());
  return architecture.context_length(config.model());
}

}  // namespace lockstep::train
