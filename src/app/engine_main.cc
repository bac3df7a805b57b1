#include "app/engine_main.h"

#include <c10/util/Exception.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string_view>

#include "app/commands/commands.h"
#include "app/flags/flags.h"
#include "app/machine/bus_errors.h"
#include "app/machine/huge_pages.h"
#include "app/machine/launched.h"
#include "app/print/failure.h"
#include "app/print/standard_output.h"
#include "base/cpu.h"
#include "base/error.h"

namespace braid {
namespace {

int show(const ShowText& text) {
  if (text.was_asked_for) {
    if (is_first_rank()) print(text.text);
    return kSuccess;
  }
  require(is_first_rank(), "the command line has no command");
  std::cerr << text.text;
  return kBadInput;
}

CommandLine read_command_line(int argc, char** argv) {
  auto line = parse_command_line(argc, argv);
  if (!std::holds_alternative<ShowText>(line)) read_cpu();  // refuses an invalid BRAID_ISA
  return line;
}

// `is_verbose` is set as soon as it is known: later error reports depend on it.
int run(int argc, char** argv, bool& is_verbose) {
  const auto began = PhaseLog::Clock::now();
  const auto line = read_command_line(argc, argv);
  if (const auto* const text = std::get_if<ShowText>(&line)) return show(*text);
  if (const auto* const flags = std::get_if<InfoFlags>(&line)) return info(*flags);
  if (const auto* const flags = std::get_if<VerifyFlags>(&line)) return verify_layout(*flags);
  if (const auto* const flags = std::get_if<ConvertFlags>(&line)) return convert_model(*flags);
  if (const auto* const flags = std::get_if<PlanFlags>(&line)) return plan(*flags);
  if (const auto* const flags = std::get_if<BenchFlags>(&line)) return bench_transformer(*flags);
  if (const auto* const flags = std::get_if<ServeFlags>(&line)) return serve_pictures(*flags);
  if (const auto* const flags = std::get_if<PullFlags>(&line)) return pull_model(*flags);
  if (const auto* const flags = std::get_if<ModelsFlags>(&line)) return list_models(*flags);
  const auto& flags = std::get<GenerateFlags>(line);
  is_verbose = flags.verbosity == Verbosity::kVerbose;
  return generate(flags, began);
}

// A reader of standard error that has stalled does not keep the program from ending.
void complain(const std::string& text) {
  constexpr int kPatience = 2000;  // milliseconds
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&end, 1, kPatience) != 0) std::cerr << text;
}

// The ranks of other commands never meet.
bool is_run_by_ranks(std::string_view command) {
  constexpr std::string_view kCommands[] = {"generate", "serve", "verify", "bench"};
  return std::ranges::find(kCommands, command) != std::end(kCommands);
}

// The first rank speaks for all ranks, except for those that it did not hear of.
int end_with(const Failure& failure, const std::string& text, std::string_view command) {
  const auto cause = std::current_exception();
  const bool is_first = name_of_rank().empty();
  if (is_first) complain(text);
  const bool is_told =
      failure.is_told_by_first_rank || (is_run_by_ranks(command) && is_told_by_first_rank(cause));
  if (!is_first && !is_told) complain(text);
  if (!is_first && is_told) let_first_rank_end();
  return failure.exit_code;
}

int run_or_complain(int argc, char** argv) {
  bool is_verbose = false;
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    return run(argc, argv, is_verbose);
  } catch (...) {
    const auto failure = current_failure(command);
    auto text = text_of("braid: ", name_of_rank(), failure.sentence, "\n");
    if (is_verbose && !failure.details.empty()) text += failure.details + "\n";
    return end_with(failure, text, command);
  }
}

}  // namespace

int engine_main(int argc, char** argv) {
  take_huge_pages();
  protect_standard_files();
  explain_bus_errors();
  return run_or_complain(argc, argv);
}

}  // namespace braid
