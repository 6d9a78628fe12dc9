import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.bookkeeper.mledger.proto.BatchedEntryDeletionIndexInfo;
import org.apache.bookkeeper.mledger.proto.LongListMap;
import org.apache.bookkeeper.mledger.proto.ManagedCursorInfo;
import org.apache.bookkeeper.mledger.proto.MessageRange;
import org.apache.bookkeeper.mledger.proto.NestedPositionInfo;
import org.apache.bookkeeper.mledger.proto.PositionInfo;

/**
 * Reads stored cursors with Apache Pulsar's own classes. Each line of the input has `entry` (of a
 * cursor ledger) or `record` (of the metadata store) and the bytes in hexadecimal; for each the
 * output has one line: the mark-delete position, ranges, half acknowledged batches, properties.
 */
public class PositionReader {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            byte[] data = HexFormat.of().parseHex(words[1]);
            System.out.println(words[0].equals("entry") ? entry(data) : record(data));
        }
    }

    private static String entry(byte[] data) {
        var info = new PositionInfo();
        info.parseFrom(data);
        var properties = new ArrayList<String>();
        info.getPropertiesList().forEach(each -> properties.add(each.getName() + "=" + each.getValue()));
        return info.getLedgerId() + ":" + info.getEntryId()
                + " ranges " + ranges(info.getIndividualDeletedMessagesList())
                + " words " + words(info.getIndividualDeletedMessageRangesList())
                + " batches " + batches(info.getBatchedEntryDeletionIndexInfosList())
                + " properties " + properties;
    }

    private static String record(byte[] data) {
        var info = new ManagedCursorInfo();
        info.parseFrom(data);
        return info.getMarkDeleteLedgerId() + ":" + info.getMarkDeleteEntryId()
                + " ranges " + ranges(info.getIndividualDeletedMessagesList())
                + " batches " + batches(info.getBatchedEntryDeletionIndexInfosList())
                + " cursor ledger " + info.getCursorsLedgerId();
    }

    private static String ranges(List<MessageRange> ranges) {
        var texts = new ArrayList<String>();
        for (MessageRange range : ranges) {
            texts.add("(" + text(range.getLowerEndpoint()) + ".." + text(range.getUpperEndpoint()) + "]");
        }
        return texts.toString();
    }

    private static String words(List<LongListMap> ledgers) {
        var texts = new ArrayList<String>();
        for (LongListMap ledger : ledgers) {
            var words = new ArrayList<String>();
            for (int place = 0; place < ledger.getValuesCount(); place++) {
                words.add(Long.toHexString(ledger.getValueAt(place)));
            }
            texts.add(ledger.getKey() + "=" + String.join("/", words));
        }
        return texts.toString();
    }

    private static String batches(List<BatchedEntryDeletionIndexInfo> batches) {
        var texts = new ArrayList<String>();
        for (BatchedEntryDeletionIndexInfo batch : batches) {
            var words = new ArrayList<String>();
            for (int place = 0; place < batch.getDeleteSetsCount(); place++) {
                words.add(Long.toHexString(batch.getDeleteSetAt(place)));
            }
            texts.add(text(batch.getPosition()) + "=" + String.join("/", words));
        }
        return texts.toString();
    }

    private static String text(NestedPositionInfo position) {
        return position.getLedgerId() + ":" + position.getEntryId();
    }
}
