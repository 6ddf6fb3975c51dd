/* `_checksum`: CRC-32C (Castagnoli), eight bytes at a time. checksum.py computes the same, byte by byte. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

static uint32_t tables[8][256];

static void fill_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        tables[0][byte] = crc;
    }
    for (int number = 1; number < 8; number++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t previous = tables[number - 1][byte];
            tables[number][byte] = previous >> 8 ^ tables[0][previous & 255];
        }
}

static uint32_t extend_crc(uint32_t crc, const uint8_t *at, size_t size) {
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
              tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    }
    while (size--) crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 255];
    return ~crc;
}

static PyObject *crc32c(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer data;
    unsigned int crc = 0;
    if (!PyArg_ParseTuple(args, "y*|I:crc32c", &data, &crc)) return NULL;
    uint32_t result;
    Py_BEGIN_ALLOW_THREADS
    result = extend_crc(crc, data.buf, (size_t)data.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(result);
}

static PyMethodDef functions[] = {
    {"crc32c", crc32c, METH_VARARGS,
     "crc32c(data, crc=0) -> CRC-32C of the preceding bytes, whose CRC is crc, and of data"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tfprof.collector.imports._checksum",
    .m_doc = "Checksums of checkpoints.",
    .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__checksum(void) {
    fill_tables();
    return PyModule_Create(&definition);
}
