// braid_engine._core: include/braid for Python, without opinions. The package around it has
// diffusers' names.
#include <nanobind/stl/string.h>

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "bind.h"
#include "braid/braid.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

// LibTorch's messages go on with lines for its own developers.
void translate_first_line(const std::exception_ptr& failure, void*) {
  try {
    std::rethrow_exception(failure);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    const char* const end = std::strchr(e.what(), '\n');
    if (!end) throw;
    PyErr_SetString(PyExc_RuntimeError, std::string(e.what(), end).c_str());
  }
}

}  // namespace

NB_MODULE(_core, m) {
  nb::register_exception_translator(translate_first_line);
  const nb::exception<Error> error(m, "Error", PyExc_RuntimeError);
  const nb::exception<InputError> input_error(m, "InputError", PyExc_ValueError);
  const nb::exception<Cancelled> cancelled(m, "Cancelled", PyExc_RuntimeError);
  bind_options(m);
  bind_requests(m);
  bind_pipeline(m);
  bind_transformer(m);
  bind_autoencoder(m);
  m.def("version", &version);
}

}  // namespace braid::python
