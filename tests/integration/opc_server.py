"""An OPC UA server with a plant's tags. After a line on stdin, one of them reports a failure.

Arguments: port, the tags with their values as JSON, the tag that fails.
"""

import asyncio
import json
import sys

from asyncua import Server, ua  # type: ignore[attr-defined]
from asyncua.ua.status_codes import StatusCodes


async def serve(port: int, readings: dict[str, float], failing: str) -> None:
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/")
    space = await server.register_namespace("plant")
    line = await server.nodes.objects.add_object(space, "Line")
    nodes = {tag: await line.add_variable(space, tag, value) for tag, value in readings.items()}
    async with server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        await nodes[failing].write_value(
            ua.DataValue(
                Value=ua.Variant(0.0, ua.VariantType.Double),
                StatusCode=ua.StatusCode(ua.UInt32(StatusCodes.BadSensorFailure)),
            )
        )
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]))
