#include "train/run/checkpoint_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

using Json = nlohmann::ordered_json;

/// Returns an integer member. Json::get would accept fractions and has undefined behaviour for
/// numbers out of range.
template <class T>
T integer(const Json& json) {
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
  if (!fits) throw std::invalid_argument("an integer in range expected, got " + json.dump());
  return json.get<T>();
}

Json to_json(const GradScalerState& state) {
  return {{"scale", state.scale},
          {"growth_factor", state.growth_factor},
          {"backoff_factor", state.backoff_factor},
          {"growth_interval", state.growth_interval},
          {"growth_tracker", state.growth_tracker}};
}

/// Parses the loss scaler's state; GradScaler::load_state checks the ranges.
GradScalerState scaler_from(const Json& json) {
  return {.scale = json.at("scale").get<double>(),
          .growth_factor = json.at("growth_factor").get<double>(),
          .backoff_factor = json.at("backoff_factor").get<double>(),
          .growth_interval = integer<int64_t>(json.at("growth_interval")),
          .growth_tracker = integer<int64_t>(json.at("growth_tracker"))};
}

Json to_json(const HeldOutMemory& memory) {
  return {{"lowest", memory.lowest},
          {"lowest_step", memory.lowest_step},
          {"reference", memory.reference},
          {"since", memory.since}};
}

HeldOutMemory held_out_from(const Json& json) {
  return {.lowest = json.at("lowest").get<double>(),
          .lowest_step = integer<int64_t>(json.at("lowest_step")),
          .reference = json.at("reference").get<double>(),
          .since = integer<int64_t>(json.at("since"))};
}

Json to_json(const SpikeMemory& memory) {
  return {{"losses", memory.losses},
          {"grad_norms", memory.grad_norms},
          {"in_a_row", memory.row.count},
          {"furthest", memory.row.furthest}};
}

SpikeMemory spike_memory_from(const Json& json) {
  SpikeMemory memory{
      .losses = json.at("losses").get<std::vector<double>>(),
      .grad_norms = json.at("grad_norms").get<std::vector<double>>(),
      .row = {integer<int64_t>(json.at("in_a_row")), integer<int64_t>(json.at("furthest"))}};
  if (memory.losses.size() != memory.grad_norms.size()) {
    throw std::invalid_argument(fmt::format("as many grad_norms as losses expected, got {} and {}",
                                            memory.grad_norms.size(), memory.losses.size()));
  }
  return memory;
}

Json to_json(const ScheduleEnd& end) {
  return {{"steps", end.steps}, {"cooldown_steps", end.cooldown_steps}};
}

ScheduleEnd early_end_from(const Json& json) {
  const ScheduleEnd end{.steps = integer<int64_t>(json.at("steps")),
                        .cooldown_steps = integer<int64_t>(json.at("cooldown_steps"))};
  if (end.cooldown_steps < 0 || end.steps < std::max<int64_t>(end.cooldown_steps, 1)) {
    throw std::invalid_argument(
        fmt::format("at most {} cooldown_steps expected, and some steps, got {}", end.steps,
                    end.cooldown_steps));
  }
  return end;
}

CheckpointManifest manifest_from(const Json& json) {
  CheckpointManifest manifest;
  manifest.format_version = integer<int64_t>(json.at("format_version"));
  manifest.lockstep_version = json.at("lockstep_version").get<std::string>();
  manifest.position.step = integer<int64_t>(json.at("step"));
  manifest.optimizer = json.at("optimizer").at("kind").get<std::string>();
  manifest.optimizer_steps = integer<int64_t>(json.at("optimizer").at("steps"));
  if (json.contains("grad_scaler")) manifest.grad_scaler = scaler_from(json["grad_scaler"]);
  if (json.contains("loss_spike")) manifest.loss_spike = spike_memory_from(json["loss_spike"]);
  manifest.after_error = json.value("after_error", false);
  if (json.contains("early_end")) manifest.early_end = early_end_from(json["early_end"]);
  if (json.contains("held_out")) manifest.held_out = held_out_from(json["held_out"]);
  const Json& random = json.at("random");
  manifest.random = {.seed = integer<uint64_t>(random.at("seed")),
                     .step = integer<uint64_t>(random.at("step")),
                     .micro_batch = integer<uint32_t>(random.at("micro_batch")),
                     .call = integer<uint32_t>(random.at("call"))};
  const Json& data = json.at("data");
  manifest.position.batch = integer<int64_t>(data.at("next_batch"));
  manifest.samples_per_batch = integer<int64_t>(data.at("samples_per_batch"));
  manifest.data = parse_hex(data.at("fingerprint").get<std::string>());
  manifest.isa = json.at("isa").get<std::string>();
  if (json.contains("arithmetic")) {
    for (const auto& [name, value] : json["arithmetic"].items()) {
      manifest.arithmetic.push_back({name, value.get<std::string>()});
    }
  }
  return manifest;
}

}  // namespace

std::string format_manifest(const CheckpointManifest& manifest) {
  Json json;
  json["format"] = kCheckpointFormat;
  json["format_version"] = manifest.format_version;
  json["lockstep_version"] = manifest.lockstep_version;
  json["step"] = manifest.position.step;
  json["optimizer"] = {{"kind", manifest.optimizer}, {"steps", manifest.optimizer_steps}};
  if (manifest.grad_scaler) json["grad_scaler"] = to_json(*manifest.grad_scaler);
  if (manifest.loss_spike) json["loss_spike"] = to_json(*manifest.loss_spike);
  if (manifest.held_out) json["held_out"] = to_json(*manifest.held_out);
  if (manifest.after_error) json["after_error"] = true;
  if (manifest.early_end) json["early_end"] = to_json(*manifest.early_end);
  json["random"] = {{"seed", manifest.random.seed},
                    {"step", manifest.random.step},
                    {"micro_batch", manifest.random.micro_batch},
                    {"call", manifest.random.call}};
  json["data"] = {{"next_batch", manifest.position.batch},
                  {"samples_per_batch", manifest.samples_per_batch},
                  {"fingerprint", manifest.data.hex()}};
  json["isa"] = manifest.isa;
  for (const ArithmeticFact& fact : manifest.arithmetic) json["arithmetic"][fact.name] = fact.value;
  if (manifest.shards) json["shards"] = json_of(*manifest.shards);
  json["files"] = json_of(manifest.files);
  return sealed(json.dump(1));
}

CheckpointManifest parse_manifest(std::string_view text, std::string_view origin) {
  FileDigests hashes;
  const Json json = checked_manifest(text, kCheckpointFormat, origin, &hashes);
  try {
    CheckpointManifest manifest = manifest_from(json);
    manifest.files = file_digests_of(json, origin, std::move(hashes));
    manifest.shards = shard_index_of(json, manifest.files, origin);
    return manifest;
  } catch (const std::exception& error) {
    if (dynamic_cast<const CheckpointError*>(&error) != nullptr) throw;
    throw CheckpointError(fmt::format("[checkpoint] {}: {}.", origin, error.what()));
  }
}

}  // namespace lockstep::train
