#include "launcher/forecast_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "configs/run.pb.h"
#include "core/base/digits.h"

namespace lockstep::launcher {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kGiB = 1 << 30;

std::string strategy_name(const train::StrategyForecast& strategy) {
  return config::ParallelConfig::Strategy_Name(
      static_cast<config::ParallelConfig::Strategy>(strategy.strategy));
}

double bucket_mib(const train::StrategyForecast& strategy) {
  return static_cast<double>(strategy.step.buckets.bytes) / (1 << 20);
}

std::string row(const train::Forecast& forecast, const train::StrategyForecast& each) {
  const dist::SimulatedStep& step = each.step;
  std::string text = fmt::format("{:<22} {:>10.2f} {:>10.2f} {:>10.2f} {:>9.2f} {:>12}",
                                 each.name(), step.seconds * 1e3, step.compute * 1e3,
                                 step.exposed * 1e3, static_cast<double>(each.memory_bytes) / kGiB,
                                 grouped(static_cast<int64_t>(forecast.tokens_per_second(each))));
  if (forecast.peak_flops > 0) text += fmt::format(" {:>6.1f}", 100 * forecast.utilization(each));
  return text + fmt::format("  {}\n", each.limit_name());
}

}  // namespace

std::string forecast_table(const std::string& config, const train::Forecast& forecast) {
  std::string text = fmt::format(
      "{}: {} parameters on {} ranks of {} host{}, {} tokens a step (predicted, not measured)\n",
      config, grouped(forecast.parameters), grouped(forecast.ranks), grouped(forecast.hosts),
      forecast.hosts == 1 ? "" : "s", grouped(forecast.tokens_per_step));
  text += fmt::format("{:<22} {:>10} {:>10} {:>10} {:>9} {:>12}{}  {}\n", "strategy", "step ms",
                      "compute ms", "exposed ms", "GiB/rank", "tokens/s",
                      forecast.peak_flops > 0 ? fmt::format(" {:>6}", "MFU %") : "", "limit");
  for (const train::StrategyForecast& each : forecast.strategies) {
    text += each.problem.empty() ? row(forecast, each)
                                 : fmt::format("{:<22} {}\n", each.name(), each.problem);
  }
  for (const train::StrategyForecast& each : forecast.strategies) {
    if (each.step.buckets.bytes == 0) continue;
    text += fmt::format("{} with parallel.bucket_mib={:.4g}\n", each.name(), bucket_mib(each));
  }
  if (forecast.memory_limit > 0) {
    text +=
        fmt::format("a rank has {:.2f} GiB\n", static_cast<double>(forecast.memory_limit) / kGiB);
  }
  return text;
}

std::string forecast_json(const std::string& config, const train::Forecast& forecast) {
  OrderedJson json = {{"config", config},
                      {"ranks", forecast.ranks},
                      {"hosts", forecast.hosts},
                      {"parameters", forecast.parameters},
                      {"tokens_per_step", forecast.tokens_per_step},
                      {"flops_per_step", forecast.flops_per_step}};
  if (forecast.memory_limit > 0) json["allowed_bytes"] = forecast.memory_limit;
  OrderedJson& list = json["strategies"] = OrderedJson::array();
  for (const train::StrategyForecast& each : forecast.strategies) {
    OrderedJson& entry = list.emplace_back();
    entry["strategy"] = strategy_name(each);
    if (each.shard_size > 0) entry["shard_size"] = each.shard_size;
    if (each.local_steps) entry["local_sgd"] = true;
    entry["fits"] = each.fits;
    entry["limit"] = each.limit_name();
    if (!each.problem.empty()) {
      entry["problem"] = each.problem;
      continue;
    }
    const dist::SimulatedStep& step = each.step;
    entry["step_ms"] = step.seconds * 1e3;
    entry["compute_ms"] = step.compute * 1e3;
    entry["straggling_ms"] = step.straggling * 1e3;
    entry["exposed_comm_ms"] = step.exposed * 1e3;
    entry["tokens_per_s"] = forecast.tokens_per_second(each);
    if (forecast.peak_flops > 0) entry["utilization"] = forecast.utilization(each);
    entry["sent_bytes"] = step.sent_bytes;
    entry["memory_bytes"] = each.memory_bytes;
    if (step.buckets.bytes > 0) entry["bucket_mib"] = bucket_mib(each);
  }
  return json.dump();
}

}  // namespace lockstep::launcher
