#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// A value of a run's config, as config_origins.txtpb tells it.
struct ConfigValue {
  std::string path;    ///< "optimizer.learning_rate"
  std::string value;   ///< as in a config file
  std::string origin;  ///< "configs/a.txtpb:7:3", "--set ...", "default"; empty: not told
};

/// Reads the text of a run's config, with or without origins as comments
/// (configs/annotated_text.h), in its order. Needs no schema, so that configs of other versions can
/// be shown too. Lines of another form are left out.
std::vector<ConfigValue> read_config_values(std::string_view text);

/// `values` with the origins that `annotated` has for the same value.
std::vector<ConfigValue> with_origins(std::vector<ConfigValue> values,
                                      const std::vector<ConfigValue>& annotated);

}  // namespace lockstep::train
