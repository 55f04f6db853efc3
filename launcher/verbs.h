#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The program's verbs. Each function adds one subcommand whose callback does the work and throws
/// lockstep::Error on failure; main turns that into a message and an exit status. A verb whose exit
/// status is its answer throws CLI::RuntimeError(status) after printing why.
namespace lockstep::launcher {

/// `command_line` goes into the run's environment.json.
void add_train(CLI::App& app, std::vector<std::string> command_line);
/// `arguments` is what follows the verb.
void add_launch(CLI::App& app, std::vector<std::string> arguments);
void add_sample(CLI::App& app);
void add_eval(CLI::App& app);
void add_checkpoint(CLI::App& app);
void add_plan(CLI::App& app);
void add_graph(CLI::App& app);
void add_bench(CLI::App& app);
void add_stress(CLI::App& app);
void add_ops(CLI::App& app);
void add_data(CLI::App& app);
void add_compare(CLI::App& app);
void add_plot(CLI::App& app);
void add_trace(CLI::App& app);
void add_config(CLI::App& app);
void add_completion(CLI::App& app);
void add_doctor(CLI::App& app);

}  // namespace lockstep::launcher
