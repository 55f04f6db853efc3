#pragma once

#include <span>
#include <string>

#include "train/page/run_record.h"

/// The sections of a run's page, each the HTML under its heading. One about which the runs say
/// nothing is empty.
namespace lockstep::train::page {

/// What could not be read.
std::string missing_section(std::span<const RunRecord> runs);
/// Steps, losses, time, goodput.
std::string summary_section(std::span<const RunRecord> runs);
/// The place for the curves, which the page's program draws, and their extremes as a table.
std::string curves_section(std::span<const RunRecord> runs);
std::string events_section(std::span<const RunRecord> runs);
std::string samples_section(std::span<const RunRecord> runs);
/// The values that were set, or that differ between the runs, and all with their origins.
std::string config_section(std::span<const RunRecord> runs);
/// The newest times of the ranks side by side, and which is the slowest.
std::string ranks_section(std::span<const RunRecord> runs);
/// Communication by bucket, where it was recorded.
std::string overlap_section(std::span<const RunRecord> runs);
std::string machine_section(std::span<const RunRecord> runs);
std::string repeat_section(std::span<const RunRecord> runs);

}  // namespace lockstep::train::page
