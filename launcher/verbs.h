#pragma once

#include <string>
#include <vector>

/// The program's verbs. Each function adds one verb, which does the work and throws
/// lockstep::Error on failure; main turns that into a message and an exit status. A verb whose exit
/// status is its answer throws ExitStatus(status) after printing why.
namespace lockstep::launcher {

class Verb;

/// `command_line` goes into the run's environment.json.
void add_train(const Verb& app, std::vector<std::string> command_line);
/// `arguments` is what follows the verb.
void add_launch(const Verb& app, std::vector<std::string> arguments);
void add_sample(const Verb& app);
void add_eval(const Verb& app);
void add_checkpoint(const Verb& app);
void add_plan(const Verb& app);
void add_graph(const Verb& app);
void add_bench(const Verb& app);
void add_stress(const Verb& app);
void add_ops(const Verb& app);
void add_data(const Verb& app);
void add_compare(const Verb& app);
void add_plot(const Verb& app);
void add_trace(const Verb& app);
void add_config(const Verb& app);
void add_completion(const Verb& app);
void add_doctor(const Verb& app);

}  // namespace lockstep::launcher
