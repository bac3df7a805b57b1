#include "op_times.h"

#include <optional>
#include <utility>

#include "pipeline/proofs/moment.h"

namespace braid {
namespace {

struct Noted {
  std::string name;
  std::vector<std::int64_t> sizes;
  Moment begin;
  std::optional<Moment> end = {};
};

// LibTorch's callbacks are plain functions, hence the globals.
thread_local std::vector<Noted> noted;
thread_local at::Device device = at::kCPU;
thread_local int depth = 0;

std::vector<std::int64_t> sizes_of(const at::RecordFunction& op) {
  std::vector<std::int64_t> sizes;
  if (!std::string_view(op.name()).starts_with("braid::")) return sizes;
  for (const auto& value : op.inputs()) sizes.push_back(value.toInt());
  return sizes;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (depth++ == 0) noted.push_back({op.name(), sizes_of(op), Moment(device)});
  return nullptr;
}

void end(const at::RecordFunction&, at::ObserverContext*) {
  if (--depth == 0 && !noted.empty()) noted.back().end.emplace(device);
}

}  // namespace

OpTimes::OpTimes(at::Device of)
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))) {
  noted.clear();
  device = of;
  depth = 0;
}

OpTimes::~OpTimes() { at::removeCallback(handle_); }

std::vector<OpTime> OpTimes::take() {
  std::vector<OpTime> times;
  for (auto& op : std::exchange(noted, {}))
    times.push_back({std::move(op.name), std::move(op.sizes), op.begin.seconds_until(*op.end)});
  return times;
}

}  // namespace braid
