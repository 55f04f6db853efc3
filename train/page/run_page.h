#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "train/page/run_record.h"

namespace lockstep::train {

/// A page about one run, or about several whose curves lie over each other and of whose configs and
/// machines what differs comes first. One HTML file that needs no other and no network, and that a
/// reader without scripts can read but for the curves. The same runs give the same bytes. All text
/// of runs is escaped. `runs` must not be empty.
std::string run_page(std::span<const RunRecord> runs);

/// How much of each of `runs` runs a page keeps, so that it stays below 5 MB.
RunRecordOptions page_options(size_t runs);

/// Writes the page of a run that ends now to report.html in its directory. Throws DataError, also
/// if its metrics have more than `most_metrics` bytes: a second goes into about 40 MB.
void write_run_page(const std::filesystem::path& directory, uint64_t most_metrics);

}  // namespace lockstep::train
