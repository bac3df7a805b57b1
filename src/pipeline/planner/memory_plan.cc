#include "pipeline/planner/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "pipeline/devices/devices.h"
#include "pipeline/planner/costs/denoisers.h"

namespace braid {
namespace {

constexpr double kBytesLate = 500'000;  // a copy's late start, in bytes it could have moved

// Choices that change the picture.
struct Changes {
  bool quantize = false, quantize_text = false, tiles = false;
};

// The choices for one job under one budget.
class MemorySearch {
 public:
  MemorySearch(const PlanJob& job, const RankPlaces& place);

  // The fastest that fits, among those that change the picture least.
  std::optional<MemoryPlan> find();
  // The choice so far that exceeds the budget by least.
  const MemoryPlan& least() const { return *least_; }

 private:
  std::vector<Changes> allowed() const;
  std::optional<MemoryPlan> find_with(const Changes& changes);
  PlanJob with(const MemoryPlan& choice) const;
  MemoryPlan measured(MemoryPlan choice) const;
  bool fits(const MemoryPlan& choice) const;
  bool consider(const MemoryPlan& choice, std::optional<MemoryPlan>& best);
  void try_transformer(const MemoryPlan& choice, std::optional<MemoryPlan>& best);
  double seconds_of(const PlanJob& job) const;

  const PlanJob& job_;
  const RankPlaces& place_;
  const Budget& budget_;
  std::vector<Stage> stages_;
  std::optional<MemoryPlan> least_;
};

std::vector<OffloadMode> modes(bool is_fixed, OffloadMode asked, std::vector<OffloadMode> choices) {
  return is_fixed ? std::vector{asked} : std::move(choices);
}

Machine machine_of(const RankPlaces& place, double memory) {
  std::vector<DeviceSpec> devices;
  for (std::size_t rank = 0; rank < place.devices.size(); ++rank) {
    const auto& name = place.devices[rank];
    auto spec = devices_named("the device", name == "cpu" ? "cpu" : "a100").front();
    spec.name = name;
    spec.memory = memory / sharers_of(place.devices, rank);
    devices.push_back(spec);
  }
  return {.devices = devices, .link = link_of(devices), .network = link_of(devices)};
}

MemorySearch::MemorySearch(const PlanJob& job, const RankPlaces& place)
    : job_(job), place_(place), budget_(job.memory.budget) {
  const double memory = budget_.device > 0 ? double(budget_.device) : 1e12;
  stages_ = plan_stages(job, machine_of(place, memory), place.grid);
}

PlanJob MemorySearch::with(const MemoryPlan& choice) const {
  auto job = job_;
  job.memory = choice.memory;
  job.tiling = choice.tiling;
  return job_on_grid(std::move(job), place_.grid);
}

MemoryPlan MemorySearch::measured(MemoryPlan choice) const {
  const auto job = with(choice);
  const auto& grid = place_.grid;
  std::map<std::string, std::int64_t> on_device;
  const bool in_files = !job.memory.offload.folder.empty();
  std::int64_t in_process = 0, locked = 0, pages = 0;
  for (int rank = 0; rank < grid.product(); ++rank) {
    const auto& stage = stages_[std::size_t(place_of(grid, rank).pp)];
    const auto bytes = predict_bytes(job_of_rank(job, grid, rank), grid, rank, stage);
    on_device[place_.devices[std::size_t(rank)]] += bytes.peak();
    const auto host = braid::host_peak(job, bytes);
    in_process = place_.are_threads ? in_process + host : std::max(in_process, host);
    locked = place_.are_threads ? locked + bytes.locked : std::max(locked, bytes.locked);
    pages = place_.are_threads ? pages + bytes.pages : std::max(pages, bytes.pages);
  }
  choice.host_peak = process_bytes(job) + in_process;
  choice.locked = locked;
  choice.files = in_files ? pages : 0;
  choice.device_peak = 0;
  for (const auto& [name, bytes] : on_device)
    choice.device_peak = std::max(choice.device_peak, bytes);
  if (job.is_on_host) choice.device_peak = choice.host_peak;
  choice.copy_seconds = seconds_of(job);
  return choice;
}

bool MemorySearch::fits(const MemoryPlan& choice) const {
  return (budget_.device == 0 || choice.device_peak <= budget_.device) &&
         (budget_.host == 0 || choice.host_peak <= budget_.host);
}

// What is copied repeatedly, on the first rank, whose stage represents the others.
double MemorySearch::seconds_of(const PlanJob& job) const {
  const auto& o = job.memory.offload;
  // What could be copied in the time that these copies take, with each one's late start.
  const auto delayed = [&](const CopiedPages& copied, OffloadMode mode) {
    const bool waits = mode == OffloadMode::kSequential || o.prefetch == 0;
    return (double(copied.bytes) + kBytesLate * double(copied.count)) * (waits ? 2 : 1);
  };
  const auto bytes_of = [&](const PartTensors& part, const Shares& sharers, Quantize form,
                            OffloadMode mode) {
    const auto pages = job.figures->pages(part, {.tp = sharers, .tp_rank = sharers.largest_rank()},
                                          {.quantize = form, .offload = mode, .blocks = o.blocks});
    auto none_stays = o;
    none_stays.resident = 0;
    return delayed(SlotUse(pages, none_stays).copied(PageUse::kRepeated), mode);
  };
  const auto& t = *job.tensors;
  const double pictures = job.num_pictures, rounds = pictures / std::max(1, job.batch_size);
  double text_bytes = 0;
  for (const auto* part : job.family->text_parts())
    if (part->is_large)
      text_bytes +=
          bytes_of(t.of(*part), text_ranks(job, place_.grid), part->form(job.memory), o.text);
  double denoiser_bytes = 0;  // of a round
  const auto pages = pages_of_denoisers(
      job, {.tp = place_.grid.of_tp(), .tp_rank = place_.grid.of_tp().largest_rank()});
  const SlotUse slots(pages.all, o);
  const auto served = served_steps(job);
  for (std::size_t i = 0; i < served.size(); ++i) {
    // a part that comes as a whole stays for all its steps
    const double times = o.transformer == OffloadMode::kModel ? 1 : double(served[i].evaluations);
    const auto moves = [&](PageUse use) {
      return delayed(slots.copied(use, pages.groups[i]), o.transformer);
    };
    denoiser_bytes += moves(PageUse::kOnce) + times * moves(PageUse::kRepeated);
  }
  const auto bytes =
      pictures * job.branches * text_bytes +
      pictures * bytes_of(t.of(Part::Role::kDecoder), Shares(1), Quantize::kNone, o.vae) +
      rounds * denoiser_bytes;
  return bytes / (o.folder.empty() ? kHostSpeed : kDiskSpeed);
}

bool MemorySearch::consider(const MemoryPlan& choice, std::optional<MemoryPlan>& best) {
  const auto made = measured(choice);
  const auto over = [&](const MemoryPlan& f) {
    return std::max<std::int64_t>(0, budget_.device ? f.device_peak - budget_.device : 0) +
           std::max<std::int64_t>(0, budget_.host ? f.host_peak - budget_.host : 0);
  };
  if (!least_ || over(made) < over(*least_)) least_ = made;
  if (!fits(made)) return false;
  if (!best || made.copy_seconds < best->copy_seconds) best = made;
  return true;
}

// Keeps as many groups of blocks as possible; each other one costs a copy per step.
void MemorySearch::try_transformer(const MemoryPlan& choice, std::optional<MemoryPlan>& best) {
  using enum OffloadMode;
  const auto& asked = job_.memory.offload;
  const auto& stated = job_.stated;
  for (const auto mode : modes(stated.transformer, asked.transformer, {kNone, kBlock, kLeaf})) {
    auto next = choice;
    auto& o = next.memory.offload;
    o.transformer = mode;
    if (mode == kNone) {
      if (consider(next, best) || job_.is_on_host) continue;
      next.memory.recorded_step = RecordedStep::kDropped;
      consider(next, best);
      continue;
    }
    const bool has_blocks = mode == kBlock;
    const auto blocks = std::int64_t(job_.family->denoisers().size()) *
                        DenoiserShape::num_blocks(job_.shape().blocks_of_step());
    const int most =
        has_blocks && !stated.resident ? int(blocks) / std::max(1, asked.blocks) : asked.resident;
    for (const int prefetch : {asked.prefetch, 0}) {
      if (prefetch != asked.prefetch && stated.prefetch) continue;
      o.prefetch = prefetch;
      // The more groups stay, the more memory is held: bisect for the largest number that fits.
      int least = has_blocks && !stated.resident ? 0 : most;
      for (int end = most + 1; least < end;) {
        o.resident = least + (end - least) / 2;
        if (consider(next, best))
          least = o.resident + 1;
        else
          end = o.resident;
      }
    }
  }
}

std::optional<MemoryPlan> MemorySearch::find_with(const Changes& changes) {
  using enum OffloadMode;
  const auto& asked = job_.memory;
  const auto& stated = job_.stated;
  std::vector<std::filesystem::path> folders = {{}};
  if (!asked.offload.folder.empty()) folders.push_back(asked.offload.folder);
  std::optional<MemoryPlan> best;
  for (const auto& folder : folders)
    for (const auto text : modes(stated.text, asked.offload.text, {kNone, kBlock, kLeaf}))
      for (const auto vae : modes(stated.vae, asked.offload.vae, {kNone, kLeaf})) {
        MemoryPlan choice{.memory = asked, .tiling = changes.tiles ? VaeTiling::kOn : job_.tiling};
        choice.memory.budget = {};
        if (changes.quantize) choice.memory.quantize = Quantize::kInt8;
        if (changes.quantize_text) choice.memory.quantize_text = Quantize::kInt8;
        choice.memory.offload.folder = folder;
        choice.memory.offload.text = text;
        choice.memory.offload.vae = vae;
        try_transformer(choice, best);
      }
  return best;
}

// Least change first: decoding in tiles changes a picture less than 8 bits.
std::vector<Changes> MemorySearch::allowed() const {
  std::vector<Changes> all;
  for (const bool text : {false, true})
    for (const bool transformer : {false, true})
      for (const bool tiles : {false, true})
        if ((!text || budget_.may_quantize_text) && (!transformer || budget_.may_quantize) &&
            (!tiles || (job_.tiling == VaeTiling::kAuto && !job_.is_budget_implied)))
          all.push_back({.quantize = transformer, .quantize_text = text, .tiles = tiles});
  return all;
}

std::optional<MemoryPlan> MemorySearch::find() {
  for (const auto& changes : allowed())
    if (auto found = find_with(changes)) return found;
  return {};
}

// The single changes that would make it fit.
std::vector<DoesNotFit::Help> what_would_help(const PlanJob& job, const RankPlaces& place) {
  using Remedy = DoesNotFit::Remedy;
  std::vector<DoesNotFit::Help> help;
  const auto consider = [&](Remedy remedy, const std::function<void(PlanJob&)>& change) {
    auto changed = job;
    change(changed);
    MemorySearch search(changed, place);
    if (const auto found = search.find()) help.push_back({remedy, found->device_peak});
  };
  const auto allow_8_bits = [](PlanJob& j) {
    j.memory.budget.may_quantize = j.memory.budget.may_quantize_text = true;
  };
  const auto allow_files = [](PlanJob& j) {
    if (j.memory.offload.folder.empty()) j.memory.offload.folder = kFolderToMake;
  };
  consider(Remedy::kFiles, allow_files);
  consider(Remedy::kEightBits, allow_8_bits);
  if (help.empty())
    consider(Remedy::kEightBitsInFiles, [&](PlanJob& j) {
      allow_8_bits(j);
      allow_files(j);
    });
  if (help.empty())
    consider(Remedy::kSmallPicture, [](PlanJob& j) {
      j.width = std::min(j.width, 512);
      j.height = std::min(j.height, 512);
    });
  return help;
}

// A need that is rounded down would be refused when it is given. Readable bytes have three digits.
std::string at_least(std::int64_t bytes) {
  const auto unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(double(bytes))) - 2));
  return readable_bytes(std::ceil(double(bytes) / unit) * unit);
}

std::string refusal(const PlanJob& job, const MemoryPlan& least) {
  const auto& budget = job.memory.budget;
  const bool lacks_device = budget.device > 0 && least.device_peak > budget.device;
  const auto has = lacks_device ? budget.device : budget.host;
  const auto needs = lacks_device ? least.device_peak : least.host_peak;
  return text_of("a picture of ", job.width, "x", job.height, " does not fit ",
                 readable_bytes(double(has)), lacks_device ? "" : " of host memory",
                 ": it needs at least ", at_least(needs), ", ", at_least(needs - has), " more");
}

}  // namespace

MemoryPlan plan_memory(const PlanJob& job, const RankPlaces& place) {
  MemorySearch search(job, place);
  const auto found = search.find();
  if (!found && job.is_budget_implied) return search.least();
  if (!found) throw DoesNotFit(refusal(job, search.least()), what_would_help(job, place));
  return *found;
}

MemoryPlan plan_memory_or_files(const PlanJob& job, const RankPlaces& place) {
  try {
    return plan_memory(job, place);
  } catch (const DoesNotFit&) {
    if (!job.memory.offload.folder.empty()) throw;
  }
  auto in_files = job;
  in_files.memory.offload.folder = kFolderToMake;
  return plan_memory(in_files, place);
}

}  // namespace braid
