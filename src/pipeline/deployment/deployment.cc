#include "pipeline/deployment/deployment.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/readable_bytes.h"
#include "parallel/refusals.h"
#include "pipeline/deployment/checked_options.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/deployment/rank_speeds.h"
#include "pipeline/devices/devices.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/memory/by_device.h"
#include "pipeline/planner/fastest.h"
#include "pipeline/planner/kept_codes.h"
#include "weights/names.h"
#include "weights/weights.h"

namespace braid {
namespace {

constexpr int kMostBlocks = 1000;  // of a kind, in a synthetic model

// A model, opened but not placed.
struct OpenedModel {
  PipelineOptions options;
  std::shared_ptr<const ModelFiles> files;
  std::shared_ptr<const Family> family;
  at::ScalarType stored;
};

OpenedModel synthetic_model(const DeployOptions& asked) {
  const auto family = named_family(asked.synthetic);
  require(family != nullptr, "synthetic weights have the shapes of ", list_of_named_models(),
          ", not '", asked.synthetic, "'");
  for (const int blocks : asked.blocks)
    require(blocks <= kMostBlocks, "a synthetic model should have at most ", kMostBlocks,
            " blocks of a kind");
  return {.options = asked.pipeline,
          .files = nullptr,
          .family = asked.blocks.empty() ? family : family->with_blocks(asked.blocks),
          .stored = at::kBFloat16};
}

// Returns the dtype that holds the numbers of all denoisers.
at::ScalarType stored_dtype(const ModelFiles& files, const Family& family) {
  std::optional<at::ScalarType> widest;
  for (const auto* const part : family.denoisers()) {
    const auto stored = files.open(part->folder).dtype();
    widest = widest ? at::promoteTypes(*widest, stored) : stored;
  }
  return widest.value();
}

void warn_of_missing_folder(const DeployOptions& asked) {
  const auto& folder = asked.pipeline.published;
  if (asked.warn && !folder.empty() && !is_folder(folder))
    asked.warn(text_of("`published` ", folder.string(), " is not read: there is no such folder"));
}

OpenedModel open_model(const DeployOptions& asked) {
  if (!asked.synthetic.empty()) return synthetic_model(asked);
  require(std::all_of(asked.blocks.begin(), asked.blocks.end(), [](int n) { return n == 0; }),
          "numbers of blocks can be chosen for synthetic weights only");
  auto found = find_model(asked.pipeline, asked.needed, asked.say, asked.warn);
  auto files = std::make_shared<const ModelFiles>(std::move(found.files));
  auto family = open_family(*files);
  const auto stored = stored_dtype(*files, *family);
  return {.options = std::move(found.options),
          .files = std::move(files),
          .family = std::move(family),
          .stored = stored};
}

// Ranks that are processes report what they all refuse together, in a world of their own, if its
// size does not depend on the model.
template <class Settle>
auto together(const DeployOptions& asked, const std::optional<Launch>& launch, Settle settle) {
  const auto& layout = asked.pipeline.layout;
  try {
    return settle();
  } catch (const InputError&) {
    if (!launch || layout.fit == Fit::kAuto || degrees_of(layout).product() != launch->size) throw;
    auto options = world_of(layout);
    options.failure = std::current_exception();
    (void)make_world(options, launch);
    throw;
  }
}

// Ranks that are processes settle a request together, but need not start for a wrong picture.
void check_request(const DeployOptions& asked, const RequestLimits& limits, bool is_launched) {
  if (!asked.request) return;
  const auto& in = asked.request->pictures;
  const bool has_pictures = !in.is_empty() || in.strength || in.mask_blur > 0 || in.padding_crop;
  if (!is_launched || has_pictures) (void)settle(*asked.request, limits, {});
}

// Warns of layers that are to stay dense and that no transformer or ControlNet has. These are
// constructed without weights.
void warn_of_unknown_layers(const DeployOptions& asked, const Family& family) {
  const auto& named = asked.pipeline.memory.keep_dense;
  if (named.empty() || !asked.warn) return;
  std::vector<SurveyedTensor> tensors;
  auto parts = family.denoisers();
  for (const auto* const net : family.parts(Part::Role::kControl)) parts.push_back(net);
  for (const auto* const part : parts)
    part->make(Weights::synthetic({.dtype = at::kFloat}).surveyed(tensors));
  for (const auto& pattern : named) {
    const bool is_known = std::ranges::any_of(
        tensors, [&](const SurveyedTensor& t) { return matches_any({pattern}, t.layer); });
    if (!is_known) asked.warn(text_of("`keep_dense` ", pattern, " names no layer of this model"));
  }
}

void take_degrees(Layout& layout, const Degrees& g) {
  layout.fit = Fit::kAsAsked;
  layout.tp = g.tp;
  layout.ring = g.ring;
  layout.ulysses = g.ulysses;
  layout.cfg = g.cfg;
  layout.dp = g.dp;
  layout.pp = g.pp;
  layout.shares = g.shares;
}

// What is planned for. A request holds pictures, so it is not copied.
PlanJob planned_job(const Deployment& d, const DeployOptions& asked) {
  if (asked.request) return job_of(d, *asked.request);
  return job_of(d, asked.typical ? asked.typical(*d.family) : Request{});
}

void warn_of_kept_codes(const DeployOptions& asked, const Deployment& d) {
  const auto& memory = asked.pipeline.memory;
  const bool is_asked =
      memory.quantize != Quantize::kNone || memory.quantize_text != Quantize::kNone;
  if (!is_asked || !asked.warn || !d.files) return;
  for (const auto& sentence : kept_codes(planned_job(d, asked), memory)) asked.warn(sentence);
}

// A model loaded for any request is checked when one arrives: it needs as many branches as the
// layout shares out.
int num_branches_shared(const DeployOptions& asked, const Family& family) {
  if (!asked.request) return asked.pipeline.layout.cfg > 1 ? 2 : 1;
  return num_branches(*asked.request, family.description().limits);
}

void take_older_names(Layout& layout) {
  const bool says_two = layout.pp != 1 && layout.layer_split != 1;
  require(!says_two || layout.pp == layout.layer_split, "`pp` and `layer_split` are two names of ",
          "one degree, they should not be ", layout.pp, " and ", layout.layer_split);
  if (layout.pp == 1) layout.pp = layout.layer_split;
  layout.layer_split = 1;
}

// The device of each rank, as this process knows them.
std::vector<at::Device> devices_by_rank(PipelineOptions options, const Degrees& degrees,
                                        const Host& host) {
  options.device = device_of_rank(options.device, host);
  return devices_of(options, degrees, host.device);
}

void check_shares_fit(const Layout& layout, const Host& host) {
  if (layout.shares_fit != Fit::kAuto) return;
  require(layout.fit != Fit::kAuto, "a layout that is chosen divides alike, so that the same ",
          "request gives the same picture: shares by measured speed need degrees that are given");
  require(layout.shares == AxisShares{}, "shares that are measured should not be given as well");
  require(bool(host.measure), "devices that are only described cannot be measured: give shares");
}

// Processes learn of each other's speeds when they have met.
void settle_shares(Deployment& d, const std::vector<std::string>& names, const DeployOptions& asked,
                   const Host& host) {
  auto& layout = d.options.layout;
  if (layout.shares_fit != Fit::kAuto) return;
  layout.shares_fit = Fit::kAsAsked;
  const auto degrees = degrees_of(layout);
  if (degrees.product() == 1) return;
  if (host.launch) {
    d.until_met = std::make_shared<const Deployment::UntilMet>(Deployment::UntilMet{asked, host});
    return;
  }
  (void)devices_by_rank(d.options, degrees, host);  // there is one for each rank
  d.measured_flops = speeds_of_threads(d, names, host);
  layout.shares = shares_by_speed(degrees, d.measured_flops);
}

// A model that is loaded for any request gets the most demanding one: as many branches as it has.
// Data parallel ranks without a picture only wait.
void check_layout(const Deployment& d, const DeployOptions& asked) {
  const auto& degrees = d.degrees();
  if (degrees.product() == 1) return;
  auto job = planned_job(d, asked);
  if (!asked.request) job.branches = most_branches(d.family->description().limits);
  auto sharing = degrees;
  sharing.dp = 1;
  sharing.shares.dp.clear();
  const auto refused = refused_layout(job, sharing);
  if (!refused) return;
  const auto model = asked.synthetic.empty() ? asked.pipeline.model.string() : asked.synthetic;
  throw UnsuitableLayout(
      text_of(asked.request ? "" : "no request could run on " + model + ": ", refused->reason));
}

void settle_layout(Deployment& d, const DeployOptions& asked, const Host& host) {
  auto& layout = d.options.layout;
  const auto names = device_names(d.options);
  const int num_ranks = host.launch ? host.launch->size : int(names.size());
  d.devices = {host.device(names.front())};  // enough for a job
  d.dtype = choose_dtype(d.options.dtype, d.dtype, d.devices.front());
  if (layout.fit == Fit::kAuto) {
    require(!has_degrees(layout), "a layout that is chosen should have no degrees of its own");
    d.layout_plan = fastest_layout(planned_job(d, asked),
                                   names_of_ranks(d.options, std::size_t(num_ranks)), host);
    take_degrees(layout, d.layout_plan->grid);
  }
  layout = choose_layout(layout, num_ranks, num_branches_shared(asked, *d.family));
  (void)world_of(layout);
  if (degrees_of(layout).product() == 1) layout.collectives = Collectives::kOrdered;  // no sums
  const auto by_rank =
      names_by_rank(d.options, std::size_t(degrees_of(layout).product()), host.launch);
  settle_shares(d, by_rank, asked, host);
  d.places = {.grid = degrees_of(layout), .devices = by_rank, .are_threads = !host.launch};
  together(asked, host.launch, [&] { check_layout(d, asked); });
}

std::shared_ptr<const TemporaryPages> made_pages() {
  try {
    return std::make_shared<const TemporaryPages>();
  } catch (const Error& error) {  // a read-only root, say
    throw Error(text_of(error.what(), ", or give another folder for offloaded weights"));
  }
}

// The plan for d's budget, with files in a temporary folder if only they make it fit. A refusal
// names what is lacking with them.
MemoryPlan plan_in_files(Deployment& d, const PlanJob& job) {
  if (d.options.memory.fit != Fit::kAuto) return plan_memory(job, d.places);
  auto& folder = d.options.memory.offload.folder;
  auto plan = plan_memory_or_files(job, d.places);
  if (!folder.empty() || plan.memory.offload.folder.empty()) return plan;
  d.pages = made_pages();
  plan.memory.offload.folder = folder = d.pages->folder();
  const auto room = std::filesystem::space(folder).available;
  require(std::uint64_t(plan.files) <= room, "the weights need files of ",
          readable_bytes(double(plan.files)), ", but ", folder.parent_path(), " has room for ",
          readable_bytes(double(room)), ": give another folder for offloaded weights");
  return plan;
}

void settle_memory(Deployment& d, const DeployOptions& asked, const Host& host) {
  auto by_device = memory_by_device(d.options, d.stated, host);
  auto& memory = d.options.memory;
  memory = std::move(by_device.memory);
  d.preset = by_device.preset;
  d.budget = memory.budget;
  d.is_budget_implied = by_device.is_budget_implied;
  if (memory.budget.is_set()) {
    d.memory_plan = plan_in_files(d, planned_job(d, asked));
    memory = d.memory_plan->memory;
  }
  memory.preset.clear();
  memory.fit = Fit::kAsAsked;
}

}  // namespace

std::int64_t Deployment::stored_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : family->description().parts)
    bytes += std::int64_t(files->open(part.folder).num_bytes());
  return bytes;
}

Request Deployment::tiled(Request request) const {
  if (memory_plan && request.vae_tiling == VaeTiling::kAuto)
    request.vae_tiling = memory_plan->tiling;
  return request;
}

Deployment deploy(const DeployOptions& given, const Host& where) {
  auto asked = given;
  auto host = where;
  check_options(asked.pipeline);
  take_older_names(asked.pipeline.layout);
  if (asked.pipeline.layout.ranks == Ranks::kThreads) host.launch.reset();
  check_shares_fit(asked.pipeline.layout, host);
  for (const auto& name : device_names(asked.pipeline))  // quicker to check than a model
    (void)host.device(device_of_rank(name, host));
  if (host.launch && host.launch->rank > 0) asked.say = asked.warn = {};
  auto model = together(asked, host.launch, [&] { return open_model(asked); });
  check_request(asked, model.family->description().limits, host.launch.has_value());
  warn_of_missing_folder(asked);
  warn_of_unknown_layers(asked, *model.family);
  Deployment d{.options = std::move(model.options),
               .files = std::move(model.files),
               .family = std::move(model.family),
               .places = {},
               .devices = {},
               .dtype = model.stored,
               .command = asked.command,
               .stated = asked.stated.value_or(stated_in(asked.pipeline.memory))};
  settle_layout(d, asked, host);
  d.devices = devices_by_rank(d.options, d.degrees(), host);
  settle_memory(d, asked, host);
  warn_of_kept_codes(asked, d);
  d.options.device = device_of_rank(d.options.device, host);
  return d;
}

void settle_shares_by_speed(Deployment& d, std::vector<double> flops) {
  const auto until_met = std::exchange(d.until_met, nullptr);
  auto asked = until_met->asked;
  asked.say = asked.warn = {};  // they have heard it
  asked.pipeline.layout = d.options.layout;
  asked.pipeline.layout.shares = shares_by_speed(d.degrees(), flops);
  auto settled = deploy(asked, until_met->host);
  d.options.layout = settled.options.layout;
  d.options.memory = settled.options.memory;
  d.places = std::move(settled.places);
  d.memory_plan = std::move(settled.memory_plan);
  d.pages = std::move(settled.pages);
  d.measured_flops = std::move(flops);
}

Deployment deploy(const PipelineOptions& options, const Warn& say_and_warn) {
  return deploy({.pipeline = options, .say = say_and_warn, .warn = say_and_warn});
}

PlanJob job_of(const Deployment& d, const Request& request) {
  auto job = job_of_family(d.family);
  job.dtype = d.dtype;
  job.memory = d.options.memory;
  job.graphs = d.options.graphs;
  job.caches_steps = d.options.cache.mode != CacheMode::kOff;
  job.stated = d.stated;
  job.is_budget_implied = d.is_budget_implied;
  job.adapters = d.options.adapter_mode;
  job.layout = d.options.layout;
  job.is_on_host = d.is_on_host();
  return surveyed(with_request(std::move(job), request), d.files.get());
}

Settings settle(const Deployment& d, const Request& request, const Warn& warn) {
  const auto limits = limits_for(request, d.family->description().limits);
  auto settings = settle(request, limits, warn);
  const int cfg = d.degrees().cfg, branches = num_branches(request, limits);
  require(branches >= cfg, too_few_branches(cfg, branches));
  if (request.adapters && *request.adapters != d.options.adapters)
    check_replaceable(d.options.adapter_mode);
  (void)schedule_of(settings, *d.family);
  return settings;
}

MemoryPlan plan_memory(const Deployment& deployment, const Request& request) {
  return plan_memory(job_of(deployment, request), deployment.places);
}

bool files_would_help(const DoesNotFit& refusal) {
  return std::ranges::any_of(refusal.help(), [](const DoesNotFit::Help& help) {
    return help.remedy == DoesNotFit::Remedy::kFiles;
  });
}

}  // namespace braid
