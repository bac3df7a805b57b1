// Where does the time of an evaluation go, and how close is it to what this machine can do?
// FLUX.1's width, 2 double and 4 single blocks, 512 text tokens, random weights. Each operation is
// listed beside its bound: its work at the rate of LibTorch's best way at the same shape in the
// same process (ceilings.h), or its bytes at the speed of a copy.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "app/commands/bench_against.h"
#include "app/flags/memory_words.h"
#include "app/machine/hardware.h"
#include "app/machine/huge_pages.h"
#include "app/print/failure.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "base/free_memory.h"
#include "ceilings.h"
#include "instruction_peaks.h"
#include "op_times.h"
#include "ops/attention_kernel.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/devices/devices.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/proofs/moment.h"
#include "pipeline/proofs/probe.h"

namespace braid {
namespace {

constexpr double kShown = 0.001;  // least share of an operation with its own row

struct ReportFlags {
  DeployOptions deploy = {.synthetic = "flux1-dev", .blocks = {2, 4}};
  ProbeOptions probe = {.width = 512, .height = 512, .max_sequence_length = 512};
  int runs = 5;
  double tolerance = 10;  // percent
  std::string against, output;
};

struct Evaluation {
  double seconds;
  std::vector<OpTime> ops;
};

struct Measured {
  std::vector<Evaluation> evaluations;  // the fastest first
  std::int64_t tokens;
  at::ScalarType dtype;
  int threads;

  const Evaluation& median() const { return evaluations[evaluations.size() / 2]; }
};

Measured measure(const ReportFlags& flags) {
  auto deployment = deploy(flags.deploy);
  const auto world = make_world(deployment);
  const auto probe = probe_of(flags.probe, deployment);
  Measured measured{.evaluations = {},
                    .tokens = probe.tokens(),
                    .dtype = probe.dtype,
                    .threads = threads_per_rank(deployment.options, 1)};
  world->run([&](const Group& group) {
    const UseThreads use(measured.threads);
    const auto mesh = make_mesh(group, {});
    const auto device = deployment.devices.front();
    const c10::DeviceGuard on(device);
    deployment.options.graphs = Graphs::kOff;  // the time of each operation is wanted
    const auto denoisers = denoisers_of(mesh, deployment);
    const std::vector inputs = {inputs_of(probe, 0, device)};
    const OncePerPicture once(*denoisers, {inputs}, probe.prefix);
    const KeepFreedMemory keep;
    const auto first = once.predict(inputs).front();
    check(first.isfinite().all().item<bool>(), "the transformer's output is no number");
    OpTimes times(device);
    for (int run = 0; run < flags.runs; ++run) {
      (void)times.take();
      const Moment begin(device);
      (void)once.predict(inputs);
      const Moment end(device);
      measured.evaluations.push_back({begin.seconds_until(end), times.take()});
    }
  });
  std::ranges::sort(measured.evaluations, {}, &Evaluation::seconds);
  return measured;
}

// The type in which weights are multiplied.
at::ScalarType product_type(const ReportFlags& flags, at::ScalarType dtype) {
  const auto form = flags.deploy.pipeline.memory.quantize;
  if (form == Quantize::kFloat8 && flags.deploy.pipeline.device != "cpu") return at::kFloat8_e4m3fn;
  return form == Quantize::kInt8Dynamic ? at::kChar : dtype;
}

// Seconds this operation takes at the machine's own rates; 0 for avoidable work: copies, sums and
// other small things between Braid's operations.
double bound_of(const OpTime& op, at::ScalarType products, at::ScalarType dtype,
                Ceilings& ceilings) {
  const auto& s = op.sizes;
  if (op.name.starts_with("braid::linear"))
    return ceilings.product(products, {s[0], s[1], s[2]}).front().seconds;
  if (op.name == "braid::attention")
    return ceilings.attention(dtype, {s[0], s[1], s[2], s[3]}).front().seconds;
  return s.empty() ? 0 : double(s[0]) / ceilings.memory_speed();
}

// The work of an evaluation's products and attention, and the least seconds that this machine's
// instructions need for it.
struct Arithmetic {
  double flops = 0, seconds = 0;
  std::string instructions;  // "tdpbssd, tdpbf16ps"; empty if none were measured

  void add(double work, const InstructionPeak* peak) {
    flops += work;
    if (!peak) return;
    seconds += work / peak->per_second;
    if (instructions.find(peak->name) != std::string::npos) return;
    instructions += (instructions.empty() ? "" : ", ") + peak->name;
  }
};

Arithmetic arithmetic_of(const ReportFlags& flags, const Measured& m) {
  const auto peaks = flags.deploy.pipeline.device == "cpu" ? instruction_peaks(m.threads)
                                                           : std::vector<InstructionPeak>();
  Arithmetic sum;
  for (const auto& op : m.median().ops) {
    const auto& s = op.sizes;
    if (op.name.starts_with("braid::linear"))
      sum.add(ProductShape{s[0], s[1], s[2]}.flops(), peak_of(peaks, product_type(flags, m.dtype)));
    if (op.name == "braid::attention")
      sum.add(AttentionShape{s[0], s[1], s[2], s[3]}.flops(), peak_of(peaks, m.dtype));
  }
  return sum;
}

struct Kind {
  int calls = 0;
  double seconds = 0, bound = 0;
};

std::map<std::string, Kind> kinds_of(const ReportFlags& flags, const Measured& measured,
                                     Ceilings& ceilings) {
  std::map<std::string, Kind> kinds;
  const auto& evaluation = measured.median();
  double rest = evaluation.seconds;
  for (const auto& op : evaluation.ops) {
    auto& kind = kinds[op.name];
    ++kind.calls;
    kind.seconds += op.seconds;
    kind.bound += bound_of(op, product_type(flags, measured.dtype), measured.dtype, ceilings);
    rest -= op.seconds;
  }
  kinds["between operations"].seconds = rest;
  return kinds;
}

OrderedJson json_of(const ReportFlags& flags, const Measured& m,
                    const std::map<std::string, Kind>& kinds) {
  OrderedJson json = {{"model", flags.deploy.synthetic},
                      {"blocks", flags.deploy.blocks},
                      {"size", text_of(flags.probe.width, "x", flags.probe.height)},
                      {"tokens", m.tokens},
                      {"config", "one rank"},
                      {"gpus", 1},
                      {"dtype", c10::getDtypeNames(m.dtype).first},
                      {"device", flags.deploy.pipeline.device},
                      {"machine", name_of_machine(flags.deploy.pipeline.device)},
                      {"threads", m.threads},
                      {"step_s", m.median().seconds}};
  if (const auto memory = flags_of(flags.deploy.pipeline.memory); !memory.empty())
    json["config"] = "one rank " + memory;
  const auto device = find_device(flags.deploy.pipeline.device);
  if (device.is_cuda()) json["attention"] = ops::attention_on(device);
  for (const auto& evaluation : m.evaluations) json["steps_s"].push_back(evaluation.seconds);
  const auto arithmetic = arithmetic_of(flags, m);
  json["gflop"] = arithmetic.flops / 1e9;
  json["gflop_per_s"] = arithmetic.flops / 1e9 / m.median().seconds;
  if (!arithmetic.instructions.empty())
    json["peak"] = {{"instructions", arithmetic.instructions},
                    {"seconds", arithmetic.seconds},
                    {"fraction", arithmetic.seconds / m.median().seconds}};
  double bound = 0;
  for (const auto& [name, kind] : kinds) bound += kind.bound;
  json["bound_s"] = bound;
  json["to_bound"] = m.median().seconds / bound;
  for (const auto& [name, kind] : kinds)
    json["ops"][name] = {{"calls", kind.calls},
                         {"seconds", kind.seconds},
                         {"share", kind.seconds / m.median().seconds},
                         {"bound_s", kind.bound}};
  return json;
}

void print_table(const OrderedJson& json) {
  std::printf("%s, %s, %s tokens, %s threads, %s\n\n", json["machine"].get<std::string>().c_str(),
              json["dtype"].get<std::string>().c_str(), json["tokens"].dump().c_str(),
              json["threads"].dump().c_str(), json["config"].get<std::string>().c_str());
  if (json.contains("attention"))
    std::printf("attention by %s\n\n", json["attention"].get<std::string>().c_str());
  std::printf("  %-36s %6s %10s %7s %10s %9s\n", "operation", "calls", "ms", "share", "bound ms",
              "to bound");
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, op] : json["ops"].items()) order.emplace_back(op["seconds"], name);
  std::sort(order.rbegin(), order.rend());
  int others = 0;
  double seconds_of_others = 0;
  for (const auto& [seconds, name] : order) {
    const auto& op = json["ops"][name];
    if (op["share"].get<double>() < kShown && op["bound_s"] == 0.0) {
      others += op["calls"].get<int>();
      seconds_of_others += seconds;
      continue;
    }
    const double bound = op["bound_s"];
    std::printf("  %-36s %6s %10.2f %6.1f%% %10.2f ", name.c_str(), op["calls"].dump().c_str(),
                1e3 * seconds, 100 * op["share"].get<double>(), 1e3 * bound);
    std::printf(bound > 0 ? "%9.2f\n" : "        -\n", seconds / bound);
  }
  std::printf("  %-36s %6d %10.2f\n", "others", others, 1e3 * seconds_of_others);
  std::printf("\n%s an evaluation, %.2f of the bound, %s\n",
              readable_seconds(json["step_s"]).c_str(), json["to_bound"].get<double>(),
              readable_seconds(json["bound_s"]).c_str());
  std::printf("%.0f GFLOP of products and attention, %.0f GFLOP/s", json["gflop"].get<double>(),
              json["gflop_per_s"].get<double>());
  if (json.contains("peak"))
    std::printf(": %.2f of what registers give by %s", json["peak"]["fraction"].get<double>(),
                json["peak"]["instructions"].get<std::string>().c_str());
  std::printf("\n");
}

int report(const ReportFlags& flags) {
  std::vector<OrderedJson> before;
  if (!flags.against.empty()) before = read_results(flags.against);
  const c10::InferenceMode no_autograd;
  const auto measured = measure(flags);
  Ceilings ceilings(find_device(flags.deploy.pipeline.device));
  std::vector results = {json_of(flags, measured, kinds_of(flags, measured, ceilings))};
  print_table(results.front());
  if (!flags.output.empty()) write_file(flags.output, indented_json(results.front()));
  if (before.empty()) return kSuccess;
  const auto compared = compare_results(results, before, flags.tolerance / 100);
  require(compared.missing.empty(), compared.missing);
  std::printf("%.2f x of %s\n", results.front()["against"]["ratio"].get<double>(),
              flags.against.c_str());
  check(compared.slower == 0, "the evaluation is slower than in ", flags.against);
  return kSuccess;
}

int run(int argc, char** argv) {
  ReportFlags flags;
  std::string size = "512", quantize = "none", dtype = "auto";
  flags.deploy.pipeline.device = "cpu";
  CLI::App app("Times an evaluation of the transformer by kinds of operations.", "report");
  app.add_option("--size", size, "Width and height in pixels")->check(CLI::Range(64, 4096));
  app.add_option("--dtype", dtype)->check(CLI::IsMember({"auto", "float32", "bfloat16"}));
  app.add_option("--quantize", quantize)->check(CLI::IsMember({"none", "int8-dynamic", "fp8"}));
  app.add_option("--device", flags.deploy.pipeline.device, "cpu, cuda or cuda:N");
  app.add_option("--blocks", flags.deploy.blocks, "Double and single blocks; 0: all")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--runs", flags.runs)->check(CLI::Range(1, 1000));
  app.add_option("--against", flags.against, "A file that --output wrote: exit code 1 if slower");
  app.add_option("--tolerance", flags.tolerance, "Percent")->check(CLI::Range(0.0, 1000.0));
  app.add_option("--output", flags.output, "Where to write JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kBadInput;
  }
  flags.probe.width = flags.probe.height = std::stoi(size);
  if (dtype == "float32") flags.deploy.pipeline.dtype = Dtype::kFloat32;
  if (dtype == "bfloat16") flags.deploy.pipeline.dtype = Dtype::kBfloat16;
  if (quantize == "fp8") flags.deploy.pipeline.memory.quantize = Quantize::kFloat8;
  if (quantize == "int8-dynamic") flags.deploy.pipeline.memory.quantize = Quantize::kInt8Dynamic;
  return report(flags);
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  braid::take_huge_pages();
  try {
    return braid::run(argc, argv);
  } catch (...) {
    const auto failure = braid::current_failure();
    std::fprintf(stderr, "report: %s\n", failure.sentence.c_str());
    return failure.exit_code;
  }
}
