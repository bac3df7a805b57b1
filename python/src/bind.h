// The module's parts: each binds some of include/braid's types.
#pragma once

#include <nanobind/nanobind.h>

namespace braid::python {

void bind_options(nanobind::module_& m);
void bind_requests(nanobind::module_& m);
void bind_pipeline(nanobind::module_& m);
void bind_transformer(nanobind::module_& m);
void bind_autoencoder(nanobind::module_& m);

}  // namespace braid::python
