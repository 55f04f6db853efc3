#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "configs/architectures.h"
#include "configs/bit_flip.h"
#include "configs/data_checks.h"
#include "configs/field.h"
#include "configs/list_value.h"
#include "configs/load.h"
#include "configs/memory_options.h"
#include "configs/message.h"
#include "configs/model_checks.h"
#include "configs/optimizer_checks.h"
#include "configs/origins.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/tensor/device.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kLongestName = 128;

void set_default(pb::Message& message, const FieldDescriptor& field, std::string_view text,
                 const std::string& path, Origins& origins) {
  if (field.is_repeated()) {
    LS_ASSERT(assign_list(message, field, path, text, ListChange::kReplace).empty());
  } else {
    LS_ASSERT(assign(message, field, text));
  }
  origins[path] = kDefaultOrigin;
}

std::string members(const pb::OneofDescriptor& choice) {
  std::vector<std::string> names;
  for (int i = 0; i < choice.field_count(); ++i) names.push_back(choice.field(i)->name() + " {}");
  return fmt::format("{}", fmt::join(names, " or "));
}

/// Chooses the default member of every oneof and sets the fields that carry a default_value. A
/// required field that nothing sets is an error, or added to `missing` if that is given.
void fill(pb::Message& message, const std::string& path, Origins& origins,
          std::vector<std::string>* missing = nullptr) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const pb::OneofDescriptor& choice = *type.oneof_decl(i);
    if (reflection.HasOneof(message, &choice)) continue;
    if (choice.options().GetExtension(required_choice)) {
      if (missing != nullptr) {
        missing->push_back(fmt::format("{}: {}", path, members(choice)));
        continue;
      }
      fail(origins, path,
           fmt::format("{} needs one {}: expected {}.", path, choice.name(), members(choice)));
    }
    const std::string& name = choice.options().GetExtension(default_choice);
    if (name.empty()) continue;
    const FieldDescriptor* member = type.FindFieldByName(name);
    LS_ASSERT(member != nullptr && member->containing_oneof() == &choice);
    reflection.MutableMessage(&message, member);
    origins[join_path(path, name)] = kDefaultOrigin;
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = join_path(path, field.name());
    const bool found = is_set(message, field, field_path, origins);
    if (field.real_containing_oneof() != nullptr && !found) continue;
    const bool is_missing = !found && field.options().GetExtension(required);
    if (is_missing && missing != nullptr) {
      if (!holds_fields(field)) {
        missing->push_back(fmt::format("{}: {}", field_path, expected(field)));
        continue;
      }
    } else if (is_missing) {
      fail(
          origins, field_path,
          fmt::format("{} is required: expected {}{}{}. Set it in the file or with --set.",
                      field_path, field.name(), holds_fields(field) ? " " : ": ", expected(field)));
    }
    if (lists_fields(field)) {
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        fill(*reflection.MutableRepeatedMessage(&message, &field, i), value_path(field_path, i),
             origins, missing);
      }
    } else if (holds_fields(field)) {
      if (!found) origins[field_path] = kDefaultOrigin;
      fill(*reflection.MutableMessage(&message, &field), field_path, origins, missing);
    } else if (!found && field.options().HasExtension(default_value)) {
      set_default(message, field, field.options().GetExtension(default_value), field_path, origins);
    }
  }
}

/// Checks each set scalar and list, and copies the origins of set fields to `kept`.
void check_values(const pb::Message& message, const std::string& path, const Origins& origins,
                  Origins& kept) {
  const pb::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = join_path(path, field.name());
    if (!is_set(message, field, field_path, origins)) continue;
    if (const auto origin = origins.find(field_path); origin != origins.end()) {
      kept.insert(*origin);
    }
    if (lists_fields(field)) {
      const pb::Reflection& reflection = *message.GetReflection();
      for (int j = 0; j < reflection.FieldSize(message, &field); ++j) {
        const std::string element = value_path(field_path, j);
        if (const auto origin = origins.find(element); origin != origins.end()) {
          kept.insert(*origin);
        }
        check_values(reflection.GetRepeatedMessage(message, &field, j), element, origins, kept);
      }
    } else if (holds_fields(field)) {
      check_values(message.GetReflection()->GetMessage(message, &field), field_path, origins, kept);
    } else if (std::string problem = violation(field_path, message, field); !problem.empty()) {
      fail(origins, field_path, std::move(problem));
    }
  }
}

bool fits_a_folder_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

std::string name_from(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string().substr(0, kLongestName - 3);
  for (char& c : name) c = fits_a_folder_name(c) ? c : '_';
  if (name.empty() || name[0] == '.' || name[0] == '-') name = "run" + name;
  return name;
}

/// Sets the scalar at `path`, which leads through messages that are set, unless it has a value.
void derive(RunConfig& config, const std::string& path, const std::string& value,
            Origins& origins) {
  pb::Message* message = &config;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    const FieldDescriptor& field =
        *message->GetDescriptor()->FindFieldByName(path.substr(begin, dot - begin));
    message = message->GetReflection()->MutableMessage(message, &field);
    begin = dot + 1;
  }
  const FieldDescriptor& field = *message->GetDescriptor()->FindFieldByName(path.substr(begin));
  if (message->GetReflection()->HasField(*message, &field)) return;
  set_default(*message, field, value, path, origins);
}

/// The largest micro-batch that gives a multiple of `leaves` micro-batches; 1 where the batch has
/// none, which check_train tells of.
int64_t largest_micro_batch(const TrainConfig& train) {
  return train.batch_size() % train.leaves() == 0 ? train.batch_size() / train.leaves() : 1;
}

void derive_groups(OptimizerConfig& optimizer, Origins& origins) {
  for (int i = 0; i < optimizer.groups_size(); ++i) {
    ParameterGroup& group = *optimizer.mutable_groups(i);
    if (group.has_weight_decay()) continue;
    group.set_weight_decay(optimizer.weight_decay());
    origins[value_path("optimizer.groups", i) + ".weight_decay"] = kDefaultOrigin;
  }
}

/// Defaults that follow from other values. Those are already known to lie in range.
void derive(RunConfig& config, Origins& origins) {
  const auto derived = [&](const std::string& path, const std::string& value) {
    derive(config, path, value, origins);
  };
  derived("name", name_from(origins[""]));
  derived("model.recompute", config.model().checkpoint_every() > 0 ? "BLOCK" : "NONE");
  const Architecture& architecture = architecture_of(config.model());
  if (architecture.defaults != nullptr) {
    for (const auto& [field, value] : architecture.defaults(config.model())) {
      derived(join_path(architecture.path(), field), value);
    }
  }
  if (config.model().has_mup() && architecture.heads != nullptr) {
    derived("model.mup.base_heads", fmt::format("{}", architecture.heads(config.model())));
  }
  derive_groups(*config.mutable_optimizer(), origins);
  derived("data.attention", has_examples(config.data()) ? "WITHIN_DOCUMENTS" : "ACROSS_DOCUMENTS");
  const TrainConfig& train = config.train();
  derived("train.leaves", config.reproducibility() == BITWISE ? "8" : "1");
  if (config.reproducibility() == BITWISE && !train.has_micro_batch_size() && train.leaves() > 1) {
    derived("train.micro_batch_size", fmt::format("{}", largest_micro_batch(train)));
    origins["train.micro_batch_size"] = fmt::format("{}{} leaves", kChosenOrigin, train.leaves());
  }
  derived("train.micro_batch_size", fmt::format("{}", train.batch_size()));
  derived("schedule.decay_steps", fmt::format("{}", train.steps()));
  derived("schedule.cooldown_steps", fmt::format("{}", config.schedule().decay_steps() / 5));
  const bool is_on_gpu = config.device().starts_with("cuda");
  const AllocatorOptions& memory =
      allocator_options_from_environment(is_on_gpu ? DeviceType::kCUDA : DeviceType::kCPU);
  for (const auto& [field, value] : memory_fields(memory)) {
    derived("memory." + field, value);
  }
}

void check_train(const TrainConfig& train, const Origins& origins) {
  if (train.batch_size() % train.micro_batch_size() != 0) {
    fail(origins, "train.micro_batch_size",
         fmt::format("train.micro_batch_size does not divide the batch: expected a divisor of {}, "
                     "got {}.",
                     train.batch_size(), train.micro_batch_size()));
  }
  const int64_t micro_batches = train.batch_size() / train.micro_batch_size();
  if (micro_batches % train.leaves() != 0) {
    const bool can_divide = train.batch_size() % train.leaves() == 0;
    fail(origins, "train.leaves",
         fmt::format("train.leaves does not divide the number of micro-batches (batch_size / "
                     "micro_batch_size = {} / {} = {}): got {}. Choose {} or fewer leaves.",
                     train.batch_size(), train.micro_batch_size(), micro_batches, train.leaves(),
                     can_divide ? "smaller micro-batches" : "a batch_size that it divides"));
  }
}

/// What evaluations during training decide needs some.
void check_evaluations(const RunConfig& config, const Origins& origins) {
  if (config.train().eval_every() > 0) return;
  const auto needs_some = [&](bool is_on, const char* path) {
    if (!is_on) return;
    fail(
        origins, path,
        fmt::format("{} goes by the held-out loss during training: expected train.eval_every above "
                    "0, got 0. Set it, or leave {} out.",
                    path, path));
  };
  needs_some(config.train().early_stopping().patience() > 0, "train.early_stopping.patience");
  needs_some(config.checkpoint().keep_best(), "checkpoint.keep_best");
}

void check_communication_hook(const RunConfig& config, const Origins& origins) {
  const ParallelConfig& parallel = config.parallel();
  const pb::FieldDescriptor* hook = parallel.GetReflection()->GetOneofFieldDescriptor(
      parallel, parallel.GetDescriptor()->FindOneofByName("communication_hook"));
  if (hook == nullptr) return;
  const std::string path = "parallel." + hook->name();
  if (config.reproducibility() == BITWISE) {
    fail(origins, path,
         fmt::format("{} cannot be with reproducibility: BITWISE: what it loses of a gradient "
                     "depends on how the gradient is shared out among the ranks, so that their "
                     "number would change bits. Leave one of them out.",
                     path));
  }
  if (parallel.has_power_sgd() && config.precision() == F16_MIXED) {
    fail(origins, path,
         fmt::format(
             "{} cannot be with precision: F16_MIXED: the errors that it keeps have the loss "
             "scale of the step before, which changes. Use BF16_MIXED, or "
             "parallel.f16_compress.",
             path));
  }
}

/// Whether a backend gave this name, with or without a number, to its slot.
bool names_a_backend(std::string_view text) {
  const std::vector<std::string> names = given_device_names();
  if (std::ranges::find(names, text.substr(0, text.find(':'))) == names.end()) return false;
  try {
    (void)parse_device(text);
    return true;
  } catch (const DeviceError&) {
    return false;  // another number than a device can have
  }
}

bool names_a_device(std::string_view text) {
  if (names_a_backend(text)) return true;
  if (text == "cpu" || text == "cuda") return true;
  if (!text.starts_with("host:") && !text.starts_with("cuda:")) return false;
  const std::string_view index = text.substr(5);
  return !index.empty() && index.size() <= 2 &&
         index.find_first_not_of("0123456789") == std::string_view::npos;
}

void check_parallel(const RunConfig& config, const Origins& origins) {
  if (config.audit().every_steps() > 0 && config.parallel().sync_batch_norm()) {
    fail(origins, "audit.every_steps",
         "audit.every_steps does not go with parallel.sync_batch_norm: no rank alone can compute a "
         "micro-batch again that all ranks normalise together. Leave one of them out.");
  }
  if (config.reproducibility() == BITWISE && config.parallel().sync_batch_norm()) {
    fail(origins, "parallel.sync_batch_norm",
         "parallel.sync_batch_norm does not go with reproducibility: BITWISE: the samples that are "
         "normalised together are those of all ranks, so that the number of ranks changes the "
         "result. Leave one of them out.");
  }
}

void check_slow_ranks(const RunConfig& config, const Origins& origins) {
  const double limit = config.parallel().leave_out_slower();
  if (limit == 0 || limit > 1) return;
  fail(origins, "parallel.leave_out_slower",
       fmt::format(
           "parallel.leave_out_slower is {}: expected more than 1, as it is the longest work "
           "of a rank by that of the others. Set for example 1.5, or 0 to leave out none.",
           limit));
}

void check_balance(const RunConfig& config, const Origins& origins) {
  const ParallelConfig& parallel = config.parallel();
  if (parallel.balance() != ParallelConfig::SPEED) return;
  const std::string path = "parallel.balance";
  if (config.reproducibility() != BITWISE) {
    fail(origins, path,
         "parallel.balance: SPEED needs reproducibility: BITWISE: otherwise the rank that computes "
         "a leaf changes bits, and measured times would. Choose BITWISE, or EVEN.");
  }
  if (parallel.strategy() != ParallelConfig::DDP &&
      parallel.strategy() != ParallelConfig::SHARD_OPTIMIZER) {
    fail(origins, path,
         fmt::format("parallel.balance: SPEED does not go with parallel.strategy: {}: the ranks "
                     "gather parameters together in every micro-batch, at the pace of the slowest. "
                     "Choose DDP or SHARD_OPTIMIZER, or EVEN.",
                     ParallelConfig::Strategy_Name(parallel.strategy())));
  }
  if (config.train().leaves() < 2) {
    fail(origins, path,
         "parallel.balance: SPEED moves leaves between ranks: expected train.leaves of several for "
         "each rank, got 1. Set train.leaves higher, or choose EVEN.");
  }
}

/// Fails for a message at `path` that does not go with another one.
[[noreturn]] void fail_beside(const Origins& origins, const std::string& path,
                              const std::string& other, const char* why) {
  fail(origins, path,
       fmt::format("{} does not go with {}: {}. Leave one of them out.", path, other, why));
}

void check_nccl(const RunConfig& config, const Origins& origins) {
  const NcclOptions& nccl = config.parallel().nccl();
  if (nccl.max_ctas() > 0 && nccl.min_ctas() > nccl.max_ctas()) {
    fail(origins, "parallel.nccl.min_ctas",
         fmt::format("parallel.nccl.min_ctas is {}: expected at most max_ctas, which is {}.",
                     nccl.min_ctas(), nccl.max_ctas()));
  }
}

void check_elastic(const RunConfig& config, const Origins& origins) {
  const ParallelConfig& parallel = config.parallel();
  if (!parallel.has_elastic()) return;
  const std::string path = "parallel.elastic";
  const auto conflict = [&](bool is_one, const std::string& other, const char* why) {
    if (is_one) fail_beside(origins, path, other, why);
  };
  const bool is_hybrid = parallel.strategy() == ParallelConfig::HYBRID_SHARD;
  conflict(parallel.strategy() != ParallelConfig::DDP && !is_hybrid,
           "a parallel.strategy that shards over all ranks",
           "a rank that is lost takes its part of the state along");
  if (is_hybrid && parallel.shard_size() < 2) {
    fail(origins, "parallel.shard_size",
         fmt::format("parallel.shard_size is {}: expected at least 2 with HYBRID_SHARD and {}, as "
                     "groups must be of one size whichever ranks are left.",
                     parallel.shard_size(), path));
  }
  conflict(parallel.has_local_sgd(), "parallel.local_sgd", "each rank has state of its own");
  conflict(parallel.sync_batch_norm(), "parallel.sync_batch_norm",
           "its layers communicate among the ranks of the start");
  conflict(
      config.device() != "cpu", fmt::format("device: \"{}\"", config.device()),
      "what a step has changed there is not known when a rank is lost, so that it needs \"cpu\"");
  const Elastic& elastic = parallel.elastic();
  if (elastic.max_ranks() > 0 && elastic.max_ranks() < elastic.min_ranks()) {
    fail(origins, path + ".max_ranks",
         fmt::format("{}.max_ranks is {}: expected at least min_ranks, which is {}, or 0.", path,
                     elastic.max_ranks(), elastic.min_ranks()));
  }
}

void check_local_sgd(const RunConfig& config, const Origins& origins) {
  if (!config.parallel().has_local_sgd()) return;
  const LocalSgd& local = config.parallel().local_sgd();
  const std::string path = "parallel.local_sgd";
  const auto conflict = [&](bool is_one, const std::string& other, const char* why) {
    if (is_one) fail_beside(origins, path, other, why);
  };
  conflict(config.reproducibility() == BITWISE, "reproducibility: BITWISE",
           "each rank trains by its own samples, so that the number of ranks changes the result");
  conflict(config.parallel().strategy() != ParallelConfig::DDP, "a parallel.strategy that shards",
           "every rank needs a copy of the model");
  conflict(
      config.parallel().communication_hook_case() != ParallelConfig::COMMUNICATION_HOOK_NOT_SET,
      "a communication hook", "no gradients are sent");
  conflict(config.checkpoint().memory_every() > 0, "checkpoint.memory_every",
           "what the ranks share is under way between two steps");
  conflict(config.parallel().sync_batch_norm(), "parallel.sync_batch_norm",
           "the ranks normalise by parameters of their own");
  conflict(config.audit().every_steps() > 0, "audit.every_steps",
           "no rank has the parameters of another");
  conflict(config.train().weight_average().decay() > 0, "train.weight_average",
           "the ranks' weights differ between two averages of theirs");
  conflict(config.optimizer().optimizer_in_backward(), "optimizer.optimizer_in_backward",
           "the mean of a rank's gradients is known after its last backward");
  if (local.delay_steps() >= local.inner_steps()) {
    fail(origins, path + ".delay_steps",
         fmt::format("{}.delay_steps is {}: expected less than inner_steps, which is {}.", path,
                     local.delay_steps(), local.inner_steps()));
  }
  if (local.fragments() > local.inner_steps()) {
    fail(origins, path + ".fragments",
         fmt::format("{}.fragments is {}: expected at most inner_steps, which is {}.", path,
                     local.fragments(), local.inner_steps()));
  }
  if (local.bits() != 4 && local.bits() != 8 && local.bits() != 32) {
    fail(origins, path + ".bits",
         fmt::format("{}.bits is {}: expected 4, 8 or 32.", path, local.bits()));
  }
}

void check_memory(const MemoryConfig& memory, const Origins& origins) {
  // Checks each text separately first, so that an error reports the place of that field.
  MemoryConfig divisions;
  if (memory.has_roundup_power2_divisions()) {
    divisions.set_roundup_power2_divisions(memory.roundup_power2_divisions());
  }
  const auto check = [&](const MemoryConfig& part, const char* path) {
    try {
      (void)allocator_options(part, {});
    } catch (const ConfigError& error) {
      fail(origins, path, error.what());
    }
  };
  check(divisions, "memory.roundup_power2_divisions");
  check(memory, "memory.max_split_size_mb");
}

void check_texts(const RunConfig& config, const Origins& origins) {
  if (!names_a_device(config.device())) {
    std::string backends;
    for (const std::string& name : given_device_names()) {
      backends += fmt::format(" or {0:?} or \"{0}:N\"", name);
    }
    fail(origins, "device",
         fmt::format("device is {:?}: expected \"cpu\", \"host:N\", \"cuda\" or \"cuda:N\"{}.",
                     config.device(), backends));
  }
  const std::string& name = config.name();
  bool good = !name.empty() && name[0] != '.' && name[0] != '-' && name.size() <= kLongestName;
  for (const char c : name) good = good && fits_a_folder_name(c);
  if (!good) {
    fail(origins, "name",
         fmt::format("name is {:?}: expected up to {} letters, digits, dots, dashes and "
                     "underscores, starting with none of dot and dash.",
                     name, kLongestName));
  }
}

}  // namespace

std::vector<std::string> set_defaults(RunConfig& config, Origins& origins) {
  std::vector<std::string> missing;
  fill(config, "", origins, &missing);
  return missing;
}

void resolve_message(pb::Message& config, Origins& origins) {
  Origins kept;
  fill(config, "", origins);
  check_values(config, "", origins, kept);
  kept.insert({"", origins[""]});
  origins = std::move(kept);
}

void resolve(RunConfig& config, Origins& origins) {
  Origins kept;
  fill(config, "", origins);
  check_values(config, "", origins, kept);
  derive(config, origins);
  check_values(config, "", origins, kept);
  check_model(config, origins);
  check_train(config.train(), origins);
  check_schedule(config, origins);
  check_evaluations(config, origins);
  check_optimizer(config, origins);
  check_parallel(config, origins);
  check_balance(config, origins);
  check_slow_ranks(config, origins);
  check_communication_hook(config, origins);
  check_local_sgd(config, origins);
  check_elastic(config, origins);
  check_nccl(config, origins);
  check_memory(config.memory(), origins);
  check_flip(config, origins);
  check_texts(config, origins);
  check_data(config.data(), origins);
  kept.insert({"", origins[""]});
  origins = std::move(kept);
}

}  // namespace lockstep::config
