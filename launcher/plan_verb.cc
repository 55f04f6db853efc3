#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

#include "configs/cluster.h"
#include "configs/cluster.pb.h"
#include "configs/run.pb.h"
#include "core/base/digits.h"
#include "core/base/json_line.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/forecast_text.h"
#include "launcher/memory_room.h"
#include "launcher/verbs.h"
#include "train/architectures.h"
#include "train/run/forecast.h"
#include "train/run/plan.h"

namespace lockstep::launcher {

namespace {

struct PlanOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  int64_t ranks = 0;    ///< 0: one, or all of the cluster
  std::string cluster;  ///< file; empty: no simulation
  bool json = false;
};

/// Sorts out what `--set` says of the cluster, without the "cluster." before its paths.
std::vector<std::string> take_cluster_overrides(std::vector<std::string>& overrides) {
  constexpr std::string_view kCluster = "cluster.";
  std::vector<std::string> taken;
  std::erase_if(overrides, [&](const std::string& each) {
    if (!each.starts_with(kCluster)) return false;
    taken.push_back(each.substr(kCluster.size()));
    return true;
  });
  return taken;
}

bool fits(const train::RunPlan& plan, const MemoryRoom& room) {
  return static_cast<uint64_t>(plan.peak_bytes) <= room.bytes;
}

std::string strategy_of(const config::RunConfig& config) {
  return config::ParallelConfig::Strategy_Name(config.parallel().strategy());
}

void print_json(const config::RunConfig& config, const train::RunPlan& plan,
                const MemoryRoom& room) {
  JsonLine line;
  line.add("config", config.name())
      .add("parameters", plan.parameters)
      .add("flops_per_token", plan.flops_per_token)
      .add("flops_per_step", plan.flops_per_step())
      .add("total_flops", plan.total_flops())
      .add("tokens_per_step", plan.tokens_per_step())
      .add("steps", plan.steps)
      .add("total_tokens", plan.total_tokens())
      .add("batch_size", plan.batch_size)
      .add("ranks", plan.ranks)
      .add("micro_batch_size", plan.micro_batch_size)
      .add("micro_batches_per_rank", plan.micro_batches)
      .add("leaves_per_rank", plan.leaves)
      .add("gradient_arenas", plan.gradient_arenas)
      .add("parameter_bytes", plan.parameter_bytes)
      .add("gradient_bytes", plan.gradient_bytes)
      .add("optimizer_bytes", plan.optimizer_bytes)
      .add("activation_bytes", plan.activation_bytes)
      .add("peak_bytes", plan.peak_bytes)
      .add("host_bytes", plan.host_bytes)
      .add("recompute", config::ModelConfig::Recompute_Name(config.model().recompute()))
      .add("strategy", strategy_of(config))
      .add("communication_bytes_per_step", plan.communication.sum())
      .add("all_reduce_bytes", plan.communication.all_reduce)
      .add("all_gather_bytes", plan.communication.all_gather)
      .add("reduce_scatter_bytes", plan.communication.reduce_scatter)
      .add("all_to_all_bytes", plan.communication.all_to_all)
      .add("broadcast_bytes", plan.communication.broadcast)
      .add("copy_bytes", plan.copy_bytes)
      .add("checkpoint_bytes", plan.checkpoint_bytes);
  if (room.bytes != UINT64_MAX) {
    line.add("allowed_bytes", room.bytes)
        .add("allowed_by", room.source)
        .add("fits", fits(plan, room));
  }
  fmt::print("{}\n", line.text());
}

/// Formats a number with four digits and an SI prefix: "879.8 M", "8.455 E".
std::string scaled(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  size_t i = 0;
  for (; value >= 999.95 && i + 1 < std::size(kPrefixes); ++i) value /= 1000;
  return fmt::format("{:.4g} {}", value, kPrefixes[i]);
}

std::string counted(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

void print_bytes(const char* what, int64_t bytes, const std::string& note = "") {
  const bool is_small = bytes > 0 && bytes < 102400;
  fmt::print("  {:<13}{:>12.1f} {}{}{}\n", what,
             static_cast<double>(bytes) / (is_small ? 1024.0 : 1048576.0), is_small ? "KiB" : "MiB",
             note.empty() ? "" : "  ", note);
}

/// What activations would take with each other value of model.recompute.
void print_other_recompute(const config::RunConfig& config, int64_t ranks) {
  using config::ModelConfig;
  config::RunConfig other = config;
  for (const auto recompute : {ModelConfig::NONE, ModelConfig::CHEAP, ModelConfig::BLOCK}) {
    if (recompute == config.model().recompute()) continue;
    other.mutable_model()->set_recompute(recompute);
    print_bytes("", train::plan_run(other, ranks).activation_bytes,
                "with model.recompute=" + ModelConfig::Recompute_Name(recompute));
  }
}

void print_text(const config::RunConfig& config, const train::RunPlan& plan,
                const MemoryRoom& room) {
  const bool has_tokens = plan.tokens_per_sample > 1;
  const char* unit = has_tokens ? "token" : "sample";
  fmt::print("{}: {} parameters\n", config.name(), grouped(plan.parameters));
  fmt::print("a step: {}", counted(plan.batch_size, has_tokens ? "sequence" : "sample",
                                   has_tokens ? "sequences" : "samples"));
  if (has_tokens) {
    fmt::print(" of {} tokens = {} tokens", grouped(plan.tokens_per_sample),
               grouped(plan.tokens_per_step()));
  }
  fmt::print("\n{}: {}{} of {}, in {}\n",
             plan.ranks == 1 ? "of it" : fmt::format("of it each of {} ranks", plan.ranks),
             plan.is_balanced ? "with parallel.balance: SPEED up to " : "",
             counted(plan.micro_batches, "micro-batch", "micro-batches"),
             grouped(plan.micro_batch_size), counted(plan.leaves, "leaf", "leaves"));
  fmt::print("work: {}FLOP a {}, {}FLOP a step, {}FLOP in {} ({} {}s)\n",
             scaled(plan.flops_per_token), unit, scaled(plan.flops_per_step()),
             scaled(plan.total_flops()), counted(plan.steps, "step", "steps"),
             grouped(plan.total_tokens()), unit);
  if (config.model().has_mup()) {
    const nn::Mup mup = train::mup_of(config.model());
    fmt::print("muP: the model is {:.4g} times as wide as its base model, its heads {:.4g} times\n",
               mup.width, mup.head_width);
  }
  fmt::print("memory{}:\n", plan.ranks == 1 ? "" : " of each rank");
  print_bytes("parameters", plan.parameter_bytes);
  print_bytes("gradients", plan.gradient_bytes, counted(plan.gradient_arenas, "arena", "arenas"));
  print_bytes("optimizer", plan.optimizer_bytes);
  print_bytes("activations", plan.activation_bytes, "and all else at the worst moment");
  print_other_recompute(config, plan.ranks);
  if (plan.copy_bytes > 0) print_bytes("copies", plan.copy_bytes, "of asynchronous saves");
  print_bytes("peak", plan.peak_bytes);
  if (plan.host_bytes > 0) print_bytes("on the host", plan.host_bytes);
  if (room.bytes != UINT64_MAX) {
    print_bytes("allowed here", static_cast<int64_t>(room.bytes), "by " + room.source);
  }
  if (!fits(plan, room)) {
    fmt::print("  does not fit here: `lockstep train` refuses it without --try-anyway\n");
  }
  if (plan.ranks > 1) {
    const bool is_local = config.parallel().has_local_sgd();
    fmt::print("sent by each rank in a step{}, with {}:\n", is_local ? " on average" : "",
               is_local ? "parallel.local_sgd" : strategy_of(config));
    const auto& sent = plan.communication;
    if (sent.all_reduce > 0) print_bytes("all_reduce", sent.all_reduce);
    if (sent.all_gather > 0) print_bytes("all_gather", sent.all_gather);
    if (sent.reduce_scatter > 0) print_bytes("reduce_sc.", sent.reduce_scatter);
    if (sent.all_to_all > 0) print_bytes("all_to_all", sent.all_to_all);
    if (sent.broadcast > 0) print_bytes("broadcast", sent.broadcast);
  }
  fmt::print("on disk:\n");
  print_bytes("a checkpoint", plan.checkpoint_bytes);
}

void run_simulation(const PlanOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  const std::vector<std::string> of_cluster = take_cluster_overrides(overrides);
  const config::ClusterConfig cluster = config::load_cluster(options.cluster, of_cluster);
  const config::RunConfig config = load_config(options.files, overrides);
  const int64_t ranks =
      options.ranks > 0 ? options.ranks : cluster.hosts() * cluster.ranks_per_host();
  const train::Forecast forecast = train::forecast_step(config, cluster, ranks);
  if (options.json) {
    fmt::print("{}\n", forecast_json(config.name(), forecast));
  } else {
    fmt::print("{}", forecast_table(config.name(), forecast));
  }
}

void run_plan(const PlanOptions& options) {
  if (!options.cluster.empty()) return run_simulation(options);
  const config::RunConfig config = load_config(options.files, options.overrides);
  const int64_t ranks = std::max<int64_t>(options.ranks, 1);
  const train::RunPlan plan = train::plan_run(config, ranks);
  const MemoryRoom room = memory_room(parse_device(config.device()), static_cast<int>(ranks));
  if (options.json) {
    print_json(config, plan, room);
  } else {
    print_text(config, plan, room);
  }
}

}  // namespace

void add_plan(const Verb& app) {
  auto options = std::make_shared<PlanOptions>();
  const Verb verb = app.verb(
      "plan",
      "What a run needs, before it starts: operations, memory and disk, from a step on tensors "
      "that have shapes only. Reads neither data nor weights");
  add_config_options(verb, options->files, options->overrides);
  verb.option("--ranks", options->ranks,
              "Processes that share each step (default 1; with --simulate all of the cluster), as "
              "parallel.strategy says. Buffers of transports are left out")
      .positive();
  verb.option("--simulate", options->cluster,
              "Predict the step of every strategy on a cluster, described by a file such as "
              "configs/clusters/h100.txtpb; --set cluster.FIELD=VALUE overrides one of its fields");
  verb.flag("--json", options->json, "One JSON object; bytes are those of one rank");
  verb.runs([options] { run_plan(*options); });
}

}  // namespace lockstep::launcher
